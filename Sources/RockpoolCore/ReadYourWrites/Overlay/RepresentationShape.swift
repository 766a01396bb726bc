// The JSON pointers of a resource's representations, parsed once (docs/reference/configuration.md#resources `resources`).

struct RepresentationShape {
    /// The array in a collection's body.
    let items: JSONPointer
    /// The object in an item's body.
    let envelope: JSONPointer
    /// The id within the object.
    let id: JSONPointer
    /// The version within the object; nil where the resource is versioned by its ETag.
    let version: JSONPointer?
    /// The time of the last change within the object.
    let updatedAt: JSONPointer?
    /// Members that only the upstream writes: the id, the version, and the times it changes.
    let stamps: [JSONPointer]
    /// Members that the upstream keeps when a PUT omits them.
    let managed: [JSONPointer]

    init(_ resource: Resource) {
        items = JSONPointer(resource.items) ?? JSONPointer(tokens: [])
        envelope = JSONPointer(resource.envelope) ?? JSONPointer(tokens: [])
        id = JSONPointer(resource.id) ?? JSONPointer(tokens: ["id"])
        version = resource.versionPlace
        updatedAt = resource.updatedAt.flatMap { JSONPointer($0) }
        // `etag` is not a pointer, so an ETag as version keeps no member.
        let texts = [resource.version, resource.updatedAt, resource.delta?.cursor].compactMap(\.self)
        let servers = resource.fields.filter { $0.value == "server" }.keys.sorted()
        let kept = texts.compactMap { JSONPointer($0) }.filter { !$0.tokens.isEmpty }
        stamps = [id] + kept
        managed = kept + servers.compactMap { JSONPointer($0) }.filter { !$0.tokens.isEmpty }
    }

    /// Returns the object of an item's body; nil when the envelope is missing.
    func opened(_ body: JSONValue) -> JSONValue? { envelope.get(in: body) }

    /// Returns the object of a request's or a response's body, which may be sent with or without the envelope.
    func unwrapped(_ body: JSONValue) -> JSONValue {
        if let inner = envelope.get(in: body), inner.object != nil { return inner }
        return body
    }

    /// Returns an item's body: the object in the envelope, beside the other members of `shell`.
    func closed(_ object: JSONValue, in shell: JSONValue?) -> JSONValue {
        var body = shell ?? .object(JSONObject())
        envelope.place(object, in: &body)
        return body
    }

    /// Returns the object with this id; unchanged when there is no id or it is not an object.
    func identified(_ object: JSONValue, as value: JSONValue?) -> JSONValue {
        guard let value, object.object != nil else { return object }
        var object = object
        id.place(value, in: &object)
        return object
    }

    /// Returns the id of an object as text; nil when it has none.
    func idText(in object: JSONValue) -> String? {
        switch id.get(in: object) {
        case .string(let text): text
        case .number(let number): number.literal
        default: nil
        }
    }
}

extension JSONPointer {
    /// Sets the value at this pointer and creates missing parent objects; fails silently when another value is in the way.
    func place(_ new: JSONValue, in value: inout JSONValue) {
        if set(new, in: &value) { return }
        for depth in (1..<max(tokens.count, 1)).reversed() {
            let ancestor = JSONPointer(tokens: Array(tokens[..<depth]))
            guard ancestor.get(in: value) == nil else { return }
            let nested = tokens[depth...].reversed().reduce(new) { .object(JSONObject([($1, $0)])) }
            if ancestor.set(nested, in: &value) { return }
        }
    }
}

extension Resource {
    /// The pointer of the version within the object; nil where the version is its ETag.
    var versionPlace: JSONPointer? { version == "etag" ? nil : JSONPointer(version) }
}
