// The JSON pointers of a resource's representations, parsed once (docs/reference/configuration.md#resources `resources`).

struct RepresentationShape {
    /// The array in a collection's body.
    let items: JSONPointer
    /// The object within an element of that array.
    let element: JSONPointer
    /// The format of the API.
    let profile: Profile?
    /// The object in an item's body.
    let envelope: JSONPointer
    /// The object within the item's object that writes may carry alone; empty where they carry the whole.
    let content: JSONPointer
    /// The id within the object; the first member of an id of several.
    let id: JSONPointer
    /// The members that make up the id.
    let ids: [JSONPointer]
    /// The member that shows what an entry of a list waits for; nil for none.
    let mark: JSONPointer?
    /// What stands before a value in a query that selects rows; nil unless the query names items, whose bodies are lists of one.
    let rowEquality: String?
    /// True if the path of an item does not tell in which list it is.
    let isShallow: Bool
    /// The version within the object; nil where the resource is versioned by its ETag.
    let version: JSONPointer?
    /// The time of the last change within the object.
    let updatedAt: JSONPointer?
    /// Members that only the upstream writes: the id, the version, and the times it changes.
    let stamps: [JSONPointer]
    /// Members that the upstream keeps when a PUT omits them.
    let managed: [JSONPointer]
    /// What the upstream was seen to make of other members that a PUT omits.
    let omitted: OmittedMembers
    /// Members that the upstream makes of new items, by their names.
    let made: [String: MadeMember]

    init(_ resource: Resource) {
        items = JSONPointer(resource.items) ?? JSONPointer(tokens: [])
        element = JSONPointer(resource.element) ?? JSONPointer(tokens: [])
        profile = resource.profile
        envelope = JSONPointer(resource.envelope) ?? JSONPointer(tokens: [])
        content = JSONPointer(resource.content) ?? JSONPointer(tokens: [])
        ids = resource.idPlaces
        id = ids[0]
        mark = resource.mark.flatMap { JSONPointer($0) }
        rowEquality = resource.rowEquality
        isShallow = resource.isShallow
        version = resource.versionPlace
        updatedAt = resource.updatedAt.flatMap { JSONPointer($0) }
        // `etag` is not a pointer, so an ETag as version keeps no member.
        let texts = [resource.version, resource.updatedAt, resource.delta?.cursor].compactMap(\.self)
        let servers = resource.fields.filter { $0.value == "server" }.keys.sorted()
        let kept = texts.compactMap { JSONPointer($0) }.filter { !$0.tokens.isEmpty }
        made = resource.learned?.made ?? [:]
        omitted = resource.omitted
        stamps = ids + kept
        let makes = made.keys.sorted().map { JSONPointer(tokens: [$0]) }
        managed = kept + makes + servers.compactMap { JSONPointer($0) }.filter { !$0.tokens.isEmpty }
    }

    /// Returns the object of an item's body; nil when the envelope is missing. A row is the only element of its list.
    func opened(_ body: JSONValue) -> JSONValue? {
        guard rowEquality != nil, let rows = items.get(in: body)?.array else { return envelope.get(in: body) }
        return rows.count == 1 ? listed(rows[0]) : nil
    }

    /// Returns the object of an element of a list; the element itself where it has none.
    func listed(_ value: JSONValue) -> JSONValue { element.tokens.isEmpty ? value : element.get(in: value) ?? value }

    /// Returns an element of a list with this object, beside the other members of `shell`.
    func asElement(_ object: JSONValue, in shell: JSONValue?) -> JSONValue {
        if element.tokens.isEmpty { return object }
        var value = shell ?? .object(JSONObject())
        element.place(object, in: &value)
        return value
    }

    /// Returns the object of a request's or a response's body, which may be sent with or without the envelope.
    func unwrapped(_ body: JSONValue) -> JSONValue {
        if let inner = opened(body), inner.object != nil { return inner }
        return body
    }

    /// True if a write carries the content of its item alone.
    func isContentAlone(_ written: JSONValue) -> Bool {
        !content.tokens.isEmpty && written.object != nil && content.get(in: written)?.object == nil
    }

    /// Returns the object of a written body: around the content, where that came alone.
    func object(ofWritten written: JSONValue) -> JSONValue {
        guard isContentAlone(written) else { return written }
        var object = JSONValue.object(JSONObject())
        content.place(written, in: &object)
        return object
    }

    /// Returns an item's body: the object in the envelope, beside the other members of `shell`.
    func closed(_ object: JSONValue, in shell: JSONValue?) -> JSONValue {
        var body = shell ?? .object(JSONObject())
        if rowEquality != nil {
            // A client may ask for the row alone.
            if shell?.object != nil, items.get(in: body)?.array == nil { return object }
            items.place(.array([object]), in: &body)
            return body
        }
        envelope.place(object, in: &body)
        return body
    }

    /// Returns the object with this id; unchanged when there is no id, or one of several members, or it is not an object.
    func identified(_ object: JSONValue, as value: JSONValue?) -> JSONValue {
        guard let value, ids.count == 1, object.object != nil else { return object }
        var object = object
        id.place(value, in: &object)
        return object
    }

    /// Returns a written object with the id of its write; one that holds it already keeps the form that its client knows.
    func identified(_ object: JSONValue, as write: FoldedWrite) -> JSONValue {
        idText(in: object) == write.id ? object : identified(object, as: write.idValue)
    }

    /// Returns a new object with the members that the upstream will make of it, until it has.
    func completed(_ object: JSONValue, by create: FoldedWrite) -> JSONValue {
        guard !made.isEmpty, !create.isDelivered, var members = object.object, let id = create.id else { return object }
        for (name, form) in made.sorted(by: { $0.key < $1.key }) where members[name] == nil {
            members[name] = form.value(id: id, madeAt: create.madeAt)
        }
        return .object(members)
    }

    /// Returns what a PUT has written, with the members that the upstream keeps when one leaves them out.
    /// - Parameter known: the same object before; nil if it is not known.
    func kept(_ written: JSONValue, over known: JSONValue?) -> JSONValue {
        guard var members = written.object, let known = known?.object else { return written }
        for (name, value) in known where members[name] == nil && omitted.keeps(name) { members[name] = value }
        return .object(members)
    }

    /// Returns the id of an object as text; nil when it has none.
    func idText(in object: JSONValue) -> String? {
        guard ids.count > 1 else { return id.get(in: object)?.identifier ?? linkedID(of: object) }
        let texts = ids.compactMap { $0.get(in: object)?.identifier }
        return texts.count == ids.count ? texts.joined(separator: ",") : nil
    }

    /// Returns the id of an object with its type; nil when it has none.
    func serverID(of object: JSONValue) -> ServerID? {
        idText(in: object).map { text in
            ServerID(
                text: text, isNumber: ids.count == 1 && id.get(in: object).map { if case .number = $0 { true } else { false } } ?? false)
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

// Marks of waiting entries (docs/outbox.md#marks).

extension RepresentationShape {
    /// Returns an entry of a list with its mark; unchanged where it waits for nothing.
    func marked(_ object: JSONValue, as state: EntityState?) -> JSONValue {
        guard let mark, let state else { return object }
        var object = object
        mark.place(.string(state.rawValue), in: &object)
        return object
    }
}

extension Resource {
    /// Returns a written body without the marks that its client has read: of an object, with or without its envelope, or of a list of objects.
    /// - Returns: nil if it has none.
    package func unmarked(_ body: JSONValue) -> JSONValue? {
        guard let mark = mark.flatMap({ JSONPointer($0) }) else { return nil }
        let places = Set(["", items, element, envelope]).compactMap { JSONPointer($0) }.sorted { $0.text < $1.text }
        var (body, isChanged) = (body, false)
        for place in places {
            switch place.get(in: body) {
            case .array(let elements)?:
                let plain = elements.map { unmarked($0) }
                guard plain.contains(where: { $0 != nil }) else { continue }
                place.set(.array(zip(plain, elements).map { $0 ?? $1 }), in: &body)
            case var value?:
                guard mark.remove(from: &value) else { continue }
                place.set(value, in: &body)
            case nil: continue
            }
            isChanged = true
        }
        return isChanged ? body : nil
    }
}

// MARK: - Formats of APIs

// What the formats of APIs say about changes of a representation (docs/reference/configuration.md#profiles).
extension RepresentationShape {
    /// Returns the object with the changes of a PATCH. JSON:API replaces each attribute, and each member of a relationship, as a whole, and null is
    /// a value (JSON:API 1.1, "Updating Resources"); elsewhere a PATCH is a merge patch (RFC 7396).
    func merged(_ object: JSONValue, with patch: JSONValue) -> JSONValue {
        guard profile == .jsonapi, let changes = patch.object, var members = object.object else { return object.merging(patch) }
        for (name, change) in changes {
            switch name {
            case "attributes": members[name] = Self.replacing(in: members[name], by: change, depth: 1)
            case "relationships": members[name] = Self.replacing(in: members[name], by: change, depth: 2)
            default: members[name] = change
            }
        }
        return .object(members)
    }

    /// Returns the PATCH of JSON:API that makes one object another; nil for another format, or where it cannot express that.
    func patch(from old: JSONValue, to new: JSONValue) -> JSONValue? {
        guard profile == .jsonapi, let before = old.object, let after = new.object else { return nil }
        var patch = JSONObject([("type", after["type"] ?? before["type"] ?? .null), ("id", before["id"] ?? .null)])
        for name in ["attributes", "relationships"] {
            let (known, wanted) = (before[name]?.object ?? JSONObject(), after[name]?.object ?? JSONObject())
            guard known.names.allSatisfy({ wanted[$0] != nil }) else { return nil }
            let changed = wanted.filter { known[$0.name] != $0.value }
            if !changed.isEmpty { patch[name] = .object(JSONObject(changed.map { ($0.name, $0.value) })) }
        }
        let result = JSONValue.object(patch)
        return merged(old, with: result) == new ? result : nil
    }

    /// Returns the id by which HAL names an object without a member for it: the last segment of its own link.
    func linkedID(of object: JSONValue) -> String? {
        guard profile == .hal, let link = JSONPointer(tokens: ["_links", "self", "href"]).get(in: object)?.string else { return nil }
        // A link may be a template (RFC 6570).
        let path = link.prefix { $0 != "?" && $0 != "#" && $0 != "{" }
        return path.split(separator: "/").last?.percentDecoded
    }

    /// Replaces the members of an object at a depth.
    private static func replacing(in value: JSONValue?, by change: JSONValue, depth: Int) -> JSONValue {
        guard depth > 0, let changes = change.object else { return change }
        var members = value?.object ?? JSONObject()
        for (name, value) in changes { members[name] = replacing(in: members[name], by: value, depth: depth - 1) }
        return .object(members)
    }
}

// Members of a new entity as its API will make them, until it has (docs/outbox.md#learning).
extension MadeMember {
    /// The value of a new entity; nil where it cannot be told.
    func value(id: String, madeAt: Timestamp?) -> JSONValue? {
        switch self {
        case .link(let template): return .string(template.replacing("{id}", with: id))
        case .time(let digits, let offset):
            guard let madeAt else { return nil }
            let moment = Timestamp(milliseconds: madeAt.milliseconds + (Self.seconds(of: offset) ?? 0) * 1000)
            let text = RFC3339.format(moment)
            let fraction = "\(text.dropFirst(20).prefix(3))000000".prefix(digits)
            return .string("\(text.prefix(19))\(digits == 0 ? "" : ".\(fraction)")\(offset)")
        }
    }
}
