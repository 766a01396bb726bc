// PUTs that leave out members of their items, and what has become of those (docs/outbox.md#omitted-members).
import HTTPTypes

/// A PUT that took effect and has left out members which its item had, until an answer of the upstream shows the item.
package struct PartialPut: Sendable {
    private let shape: RepresentationShape
    /// True if names are those of the content alone.
    private let isContentAlone: Bool
    /// The members that it has left out, as they were before.
    private let omitted: JSONObject
    /// The label of its resource.
    package let label: String

    /// - Parameter before: the item's body before; nil if it is not known.
    /// - Returns: nil for any other write, and for one that has left out nothing but what the upstream alone writes.
    package init?(_ write: AnsweredWrite, before: JSONValue?) {
        guard write.outcome == .applied, write.addressesEntity, write.setsItsBody, write.entity?.isItem == true,
            let resource = write.entity?.resource, let body = write.body
        else { return nil }
        self.init(write.request, body: body, resource: resource, before: before)
    }

    /// A PUT to an item.
    package init?(_ request: RequestHead, body: [UInt8], resource: Resource, before: JSONValue?) {
        guard request.method == .put, [.json, .otherJSON].contains(JSONBodyType(request.fields[.contentType])),
            case let shape = RepresentationShape(resource), let known = before.flatMap(shape.opened),
            let sent = (try? JSONValue.parse(body)).map(shape.unwrapped), let written = sent.object,
            let members = Self.members(of: known, in: shape, isContentAlone: shape.isContentAlone(sent))
        else { return nil }
        (self.shape, label, isContentAlone) = (shape, resource.label, shape.isContentAlone(sent))
        let own = Set((shape.stamps + shape.managed).compactMap(\.tokens.first))
        let omitted = members.prefix(OmittedMembers.memberLimit).filter { name, _ in
            written[name] == nil && !own.contains(name) && name.utf8.count <= OmittedMembers.nameLength
        }
        self.omitted = JSONObject(omitted.map { ($0.name, $0.value) })
        if omitted.isEmpty { return nil }
    }

    /// Returns what a body that shows the item tells of the members that were left out; nil if it tells nothing. Other values than before are
    /// somebody's change; a blank one may be the default.
    package func shown(by body: JSONValue) -> OmittedMembers? {
        guard let object = shape.opened(body), let now = Self.members(of: object, in: shape, isContentAlone: isContentAlone) else {
            return nil
        }
        var kept: [JSONValue] = [], gone: [JSONValue] = []
        for (name, value) in omitted where !value.isBlank {
            if now[name] == value { kept.append(.string(name)) } else if now[name]?.isBlank ?? true { gone.append(.string(name)) }
        }
        return kept.isEmpty && gone.isEmpty ? nil : OmittedMembers(json: ["kept": .array(kept), "gone": .array(gone)])
    }

    /// Returns the item's body after the PUT alone, with those of the members that it left out which the upstream shows now: as they were before,
    /// because another value is somebody's change, unless it is blank.
    /// - Parameter made: the body that the PUT is expected to have made.
    package func corrected(_ made: JSONValue, by shown: JSONValue) -> JSONValue {
        guard let now = shape.opened(shown).flatMap({ Self.members(of: $0, in: shape, isContentAlone: isContentAlone) }),
            var object = shape.opened(made), var members = Self.members(of: object, in: shape, isContentAlone: isContentAlone)
        else { return made }
        for (name, value) in omitted { members[name] = now[name].map { $0.isBlank ? $0 : value } }
        if isContentAlone { shape.content.place(.object(members), in: &object) } else { object = .object(members) }
        return shape.closed(object, in: made)
    }

    private static func members(of object: JSONValue, in shape: RepresentationShape, isContentAlone: Bool) -> JSONObject? {
        (isContentAlone ? shape.content.get(in: object) : object)?.object
    }
}

extension JSONValue {
    /// True for a value that an API may give a member of which it knows nothing.
    fileprivate var isBlank: Bool {
        switch self {
        case .null: true
        case .bool(let value): !value
        case .number: self == 0
        case .string(let text): text.isEmpty
        case .array(let elements): elements.isEmpty
        case .object(let members): members.isEmpty
        }
    }
}
