// Versions that stand in a body: in what is folded they follow the local tag, and before a write is sent they become the server's
// (docs/outbox.md#local-etags).
package import HTTPTypes

/// The members of a resource's representations that hold its version as text.
package struct LocalVersions {
    /// The largest body in bytes that is searched.
    private static let limit = Int.mib(1)
    /// Bytes of a tag that no other member has by chance: a shorter one without its quotes is a version only where its member is named so.
    private static let unmistakable = 8

    private let shape: RepresentationShape
    /// The declared version within the object; nil where the resource is versioned by its ETag.
    private let place: JSONPointer?

    package init(_ resource: Resource) {
        shape = RepresentationShape(resource)
        place = resource.versionPlace
    }

    init(_ shape: RepresentationShape) { (self.shape, place) = (shape, shape.version) }

    // MARK: - Reads

    /// Returns a folded representation in which the declared version, and a member that repeats the ETag, name the local state.
    /// - Parameters:
    ///   - body: with its envelope.
    ///   - sequence: the last write in it.
    ///   - etag: that of the representation without the writes.
    package func shown(_ body: JSONValue, after sequence: Int64, etag: EntityTag?) -> JSONValue {
        shape.opened(body).map { shape.closed(marked($0, after: sequence, etag: etag), in: body) } ?? body
    }

    /// Returns an object, without its envelope, as `shown(_:after:etag:)` does.
    func marked(_ object: JSONValue, after sequence: Int64, etag: EntityTag? = nil) -> JSONValue {
        // Clients of FHIR name the version that they change.
        if shape.profile == .fhir, object.object != nil, let place, place.get(in: object) == nil {
            var new = object
            place.place(.string(LocalETag(sequence: sequence).written(like: "")), in: &new)
            return new
        }
        return mapped(object) { name, text, isDeclared in
            if let local = LocalETag(text), isDeclared || local.base != nil {
                return LocalETag(sequence: sequence, base: local.base).written(like: text)
            }
            guard let tag = EntityTag(text) else { return nil }
            let isBare = !text.hasPrefix("\"") && !tag.isWeak
            let isUnmistakable = !isBare || text.utf8.count >= Self.unmistakable || CommonMembers.versions.contains(name)
            guard isDeclared || isUnmistakable && etag.map(tag.names) == true else { return nil }
            return LocalETag(sequence: sequence, base: isBare ? EntityTag("\"\(text)\"") : tag).written(like: text)
        }
    }

    // MARK: - Writes

    /// Returns the declared version in a representation; nil without one, and for one that is no text.
    package func version(in body: [UInt8]) -> String? {
        (try? JSONValue.parse(body)).flatMap { place?.get(in: shape.unwrapped($0))?.string }
    }

    /// The local states that a JSON body names as versions.
    package func tags(in body: [UInt8]) -> [LocalETag] {
        var tags: [LocalETag] = []
        _ = replaced(in: body) { tag in
            tags.append(tag)
            return nil
        }
        return tags
    }

    /// Returns the body with each local version replaced; unchanged if it names none.
    /// - Parameter real: returns the server's version; nil keeps the local one.
    package func replaced(in body: [UInt8], by real: (LocalETag) -> String?) -> [UInt8] {
        guard body.holds("loc-"), body.count <= Self.limit, let value = try? JSONValue.parse(body) else { return body }
        func replace(_: String, _ text: String, _ isDeclared: Bool) -> String? {
            LocalETag(text).flatMap { isDeclared || $0.base != nil ? real($0) : nil }
        }
        let result: JSONValue
        if let operations = value.array {
            // A JSON Patch tests the version that its client has seen.
            result = .array(operations.map { mapped($0, replace) })
        } else {
            let object = shape.unwrapped(value)
            let new = mapped(object, replace)
            result = object == value ? new : shape.closed(new, in: value)
        }
        return result == value ? body : result.serialized()
    }

    /// The declared version in a representation, of any type; nil without one.
    package func value(in body: [UInt8]) -> JSONValue? {
        guard let place, body.count <= Self.limit, let value = try? JSONValue.parse(body) else { return nil }
        return place.get(in: shape.unwrapped(value))
    }

    /// Returns the body with another declared version.
    package func with(_ version: JSONValue, in body: [UInt8]) -> [UInt8] {
        guard let place, let value = try? JSONValue.parse(body) else { return body }
        var object = shape.unwrapped(value)
        let isBare = object == value
        place.place(version, in: &object)
        return (isBare ? object : shape.closed(object, in: value)).serialized()
    }

    /// Returns the object with the text of each of its own members but the id, and of the declared version, replaced where `change` returns
    /// another.
    private func mapped(_ object: JSONValue, _ change: (_ name: String, _ text: String, _ isDeclared: Bool) -> String?) -> JSONValue {
        guard let members = object.object else { return object }
        let top = place?.tokens.count == 1 ? place?.tokens.first : nil
        let ids = shape.ids.filter { $0.tokens.count == 1 }.compactMap(\.tokens.first)
        var result = JSONValue.object(
            JSONObject(
                members.map { name, value in
                    let text = ids.contains(name) ? nil : value.string
                    return (name, text.flatMap { change(name, $0, name == top) }.map { JSONValue.string($0) } ?? value)
                }))
        if top == nil, let place, let text = place.get(in: result)?.string, let new = change("", text, true) {
            place.place(.string(new), in: &result)
        }
        return result
    }
}

extension LocalETag {
    /// The tag as a member of a body holds it: with quotes where the text had them.
    fileprivate func written(like text: String) -> String {
        text.hasPrefix("\"") || text.hasPrefix("W/") ? fieldValue : String(fieldValue.dropFirst().dropLast())
    }
}

extension HTTPFields {
    /// The fields without those that describe the bytes of a body that is replaced.
    package var ofReplacedBody: HTTPFields {
        var fields = self
        for name in [HTTPField.Name.contentLength] + HTTPField.Name.digests { fields[name] = nil }
        return fields
    }
}

/// An entity as its client reads it, as far as a condition of the client's next write is concerned (docs/outbox.md#optimistic-replies;
/// RFC 9110 §13.1).
package struct LocalCondition: Hashable, Sendable {
    package enum Presence: Hashable, Sendable { case present, absent, unknown }

    /// Whether the client reads the entity, or that there is none.
    package var presence: Presence
    /// The upstream's tags of the copies that the client may read; empty if none is known to be current.
    package var tags: [EntityTag]
    /// The last queued write that the client reads; nil without one. The entity then has a local tag only.
    package var lastPending: Int64?

    package init(presence: Presence, tags: [EntityTag] = [], lastPending: Int64? = nil) {
        self.presence = presence
        self.tags = tags
        self.lastPending = lastPending
    }

    /// Returns the reason in words why a write with these fields is refused; nil where only the upstream can decide.
    package func contradiction(of fields: HTTPFields) -> String? {
        if let list = fields[.ifNoneMatch], FieldList.trimmed(list[...]) == "*", presence == .present {
            return "If-None-Match: * forbids to replace what exists"
        }
        guard let list = fields[.ifMatch] else { return nil }
        if presence == .absent { return "If-Match demands what does not exist" }
        guard FieldList.trimmed(list[...]) != "*" else { return nil }
        return isCurrent(EntityTag.list(in: list)) == false ? "If-Match names a state that has been replaced" : nil
    }

    /// Returns true if one of the tags names the state that the client reads; nil if that is not known.
    private func isCurrent(_ named: [EntityTag]) -> Bool? {
        let local = named.compactMap { LocalETag($0) }
        if let lastPending { return local.contains { $0.sequence >= lastPending } }
        guard local.isEmpty, !tags.isEmpty else { return nil }
        return named.contains { tag in tags.contains(where: tag.names) }
    }
}
