// The parser of one page of changes (docs/outbox.md#delta-pull; RFC 8288 for `Link`).
import HTTPTypes

/// A change of one entity.
package enum DeltaChange: Hashable, Sendable {
    /// The entity exists in this representation. `version` is the value at the version pointer; nil where versions are ETags.
    case upsert(id: String, version: String?, representation: JSONValue)
    /// The entity was deleted; `at` is the time of the deletion by the upstream's clock, nil where the upstream gives none.
    case removal(id: String, at: Timestamp? = nil)

    /// The entity's id, as it stands in its path.
    package var id: String {
        switch self {
        case .upsert(let id, _, _), .removal(let id, _): id
        }
    }
}

/// The reason why a response is not a valid page.
package struct DeltaFault: Error, Hashable, Sendable {
    /// The description for the log.
    package let detail: String

    package init(_ detail: String) { self.detail = detail }
}

/// A page of changes.
package struct DeltaPage: Hashable, Sendable {
    /// The next page of a pull.
    enum Continuation: Hashable, Sendable {
        case target(String)
        /// The same template with this cursor.
        case cursor(DeltaCursor)
    }

    /// The changes in the upstream's order.
    var changes: [DeltaChange] = []
    /// The cursor that the upstream issued for the next pull.
    var issued: DeltaCursor?
    /// The latest time stamp of the items.
    var latest: DeltaCursor?
    var continuation: Continuation?

    /// Parses the response to `request`. Throws `DeltaFault` when the response does not match the resource's description: the whole page is
    /// rejected, since a cursor past an unreadable item would lose that item.
    init(_ body: [UInt8], _ fields: HTTPFields, to request: RequestHead, _ shape: DeltaShape) throws(DeltaFault) {
        let value: JSONValue
        do {
            value = try JSONValue.parse(body)
        } catch {
            throw DeltaFault("not JSON: \(error.problem.rawValue), at byte \(error.offset)")
        }
        guard let items = shape.items.get(in: value)?.array else { throw DeltaFault("no array at \"\(shape.items.text)\"") }
        let now = fields[.date].flatMap { HTTPDate.parse($0) }
        for item in items { try take(item, in: shape, now: now) }
        for gone in shape.tombstones?.get(in: value)?.array ?? [] {
            guard let id = (shape.id.get(in: gone) ?? gone).identifier else { throw DeltaFault("a tombstone without an id") }
            let stated = (shape.deleted?.get(in: gone) ?? shape.moment?.get(in: gone)).flatMap(Timestamp.init(stated:))
            changes.append(.removal(id: id, at: stated.flatMap { $0.isImpossible(at: now) ? nil : $0 }))
            note(gone, in: shape, now: now)
        }
        issued = shape.issued.get(in: value)?.identifier.flatMap { DeltaCursor(issued: $0) }
        continuation = Self.continuation(from: value, fields: fields, request: request, issued: issued, shape: shape)
    }

    private mutating func take(_ item: JSONValue, in shape: DeltaShape, now: Timestamp?) throws(DeltaFault) {
        guard let id = shape.id.get(in: item)?.identifier else { throw DeltaFault("an item without an id at \(shape.id.text)") }
        if let mark = shape.deleted?.get(in: item), mark.isMarked {
            changes.append(.removal(id: id, at: Timestamp(stated: mark).flatMap { $0.isImpossible(at: now) ? nil : $0 }))
        } else {
            changes.append(.upsert(id: id, version: shape.version?.get(in: item)?.identifier, representation: item))
        }
        note(item, in: shape, now: now)
    }

    /// Advances `latest`, but not to a time that the upstream has not reached: the changes until then would never be asked for. The only
    /// time stamp of a tombstone may be that of its deletion.
    private mutating func note(_ item: JSONValue, in shape: DeltaShape, now: Timestamp?) {
        for place in [shape.moment, shape.deleted] {
            guard let moment = place?.get(in: item).flatMap({ DeltaCursor(member: $0) }), moment.moment?.isImpossible(at: now) != true
            else { continue }
            latest = DeltaCursor.later(latest, moment)
        }
    }

    private static func continuation(
        from value: JSONValue, fields: HTTPFields, request: RequestHead, issued: DeltaCursor?, shape: DeltaShape
    ) -> Continuation? {
        if let link = LinkField.next(in: fields) { return target(of: link, request: request).map(Continuation.target) }
        if let next = value["next"]?.string, !next.isEmpty {
            let isReference = next.hasPrefix("/") || next.hasPrefix("?") || next.hasPrefix("http")
            guard isReference else { return DeltaCursor(issued: next).map(Continuation.cursor) }
            return target(of: next, request: request).map(Continuation.target)
        }
        guard shape.more.get(in: value)?.bool == true else { return nil }
        return issued.map(Continuation.cursor)
    }

    /// Resolves a reference to the next page; nil for another origin, which does not belong to the upstream.
    private static func target(of reference: String, request: RequestHead) -> String? {
        URIReference.resolve(reference, origin: request.origin, target: request.target)
            .map { String($0.dropFirst(request.origin.url.count)) }
    }
}
