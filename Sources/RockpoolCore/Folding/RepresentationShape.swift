// Where the parts of a resource's representations are: its pointers, read once (contract §2 `resources`).

struct RepresentationShape {
    /// The array in a collection's body.
    let items: JSONPointer
    /// The object in an item's body.
    let envelope: JSONPointer
    /// The id within the object.
    let id: JSONPointer
    /// When it was last changed, within the object.
    let updatedAt: JSONPointer?
    /// What the upstream alone writes: the id, the version, and the times it changes.
    let stamps: [JSONPointer]
    /// What the upstream keeps of an object when a PUT leaves it out.
    let managed: [JSONPointer]

    init(_ resource: Resource) {
        items = JSONPointer(resource.items) ?? JSONPointer(tokens: [])
        envelope = JSONPointer(resource.envelope) ?? JSONPointer(tokens: [])
        id = JSONPointer(resource.id) ?? JSONPointer(tokens: ["id"])
        updatedAt = resource.updatedAt.flatMap { JSONPointer($0) }
        // `etag` is no pointer, so an ETag keeps nothing.
        let texts = [resource.version, resource.updatedAt, resource.delta?.cursor].compactMap(\.self)
        let servers = resource.fields.filter { $0.value == "server" }.keys.sorted()
        let kept = texts.compactMap { JSONPointer($0) }.filter { !$0.tokens.isEmpty }
        stamps = [id] + kept
        managed = kept + servers.compactMap { JSONPointer($0) }.filter { !$0.tokens.isEmpty }
    }

    /// The object of an item's body; nil when the envelope is not there.
    func opened(_ body: JSONValue) -> JSONValue? { envelope.get(in: body) }

    /// The object of a request's or an answer's body, which clients and servers send with the envelope or without.
    func unwrapped(_ body: JSONValue) -> JSONValue {
        if let inner = envelope.get(in: body), inner.object != nil { return inner }
        return body
    }

    /// An item's body: the object in the envelope, beside what else `shell` has there.
    func closed(_ object: JSONValue, in shell: JSONValue?) -> JSONValue {
        var body = shell ?? .object(JSONObject())
        envelope.place(object, in: &body)
        return body
    }

    /// The object with this id; as it is without one, or when it is no object.
    func identified(_ object: JSONValue, as value: JSONValue?) -> JSONValue {
        guard let value, object.object != nil else { return object }
        var object = object
        id.place(value, in: &object)
        return object
    }

    /// The id of an object as text; nil when it has none.
    func idText(_ object: JSONValue) -> String? {
        switch id.get(in: object) {
        case .string(let text): text
        case .number(let number): number.literal
        default: nil
        }
    }
}

extension JSONPointer {
    /// Sets what is at this place, with the objects that lead to it where nothing stands in the way.
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
