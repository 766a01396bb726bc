// One pull of changes, from its first request to its last page, and the parser of a page (docs/outbox.md#delta-pull;
// docs/architecture.md#rules).
package import HTTPTypes
import OrderedCollections

/// The result of a completed pull.
package struct DeltaOutcome: Hashable, Sendable {
    /// The last change of each entity, in the upstream's order.
    package var changes: [DeltaChange]
    /// The cursor for the next pull; nil when the upstream has given none.
    package var cursor: DeltaCursor?
    /// True if the pull listed everything that exists: an entity that is not among `changes` was deleted.
    package var isFull: Bool
    /// The number of requests of the pull.
    package var pages: Int
    /// True if a page forbids that its content is stored (RFC 9111 §5.2.2.5).
    package var isNotStored = false
}

/// A pull in progress. The caller sends its requests and passes in the responses; a lost response ends the pull without applying changes,
/// so that the cursor does not move.
package struct DeltaPull: Sendable {
    /// The next step for the caller.
    package enum Action: Hashable, Sendable {
        /// Send this request.
        case ask(RequestHead)
        case finished(DeltaOutcome)
        /// The pull failed without changes; the value describes the reason.
        case failed(String)
    }

    /// The maximum number of pages of one pull.
    package static let pageLimit = 1000
    /// The maximum number of entities of one pull.
    package static let changeLimit = 100_000

    private let shape: DeltaShape
    private let isFull: Bool
    private var request: RequestHead
    private var cursor: DeltaCursor?
    private var issued: DeltaCursor?
    private var asked: Set<String> = []
    private var changes: OrderedDictionary<String, DeltaChange> = [:]
    private var isNotStored = false

    /// - Parameters:
    ///   - base: method, origin and fields of the requests; its target is ignored.
    ///   - since: the cursor of the last pull; nil lists everything.
    ///   - isFull: lists everything although there is a cursor.
    package init(_ shape: DeltaShape, base: RequestHead, since: DeltaCursor?, isFull: Bool) {
        self.shape = shape
        self.isFull = isFull || since == nil
        cursor = since
        request = base
    }

    /// Returns the first request.
    package mutating func start() -> Action {
        ask(shape.template.target(after: isFull ? nil : cursor?.asked()))
    }

    /// Processes a response of status 200: its body and fields.
    package mutating func received(_ body: [UInt8], fields: HTTPFields) -> Action {
        let page: DeltaPage
        do {
            page = try DeltaPage(body, fields, to: request, shape)
        } catch {
            return .failed(error.detail)
        }
        for change in page.changes { changes[change.id] = change }
        isNotStored = isNotStored || CacheControl(fields).noStore
        // A cursor that an earlier version has moved too far asks for nothing: the next pull lists everything.
        if cursor?.moment?.isImpossible(at: fields[.date].flatMap { HTTPDate.parse($0) }) == true { cursor = nil }
        cursor = DeltaCursor.later(cursor, page.latest)
        issued = page.issued ?? issued
        guard let continuation = page.continuation else { return finished() }
        if changes.count > Self.changeLimit || asked.count >= Self.pageLimit { return cutShort() }
        switch continuation {
        case .target(let target): return ask(target)
        case .cursor(let cursor): return ask(shape.template.target(after: cursor.text))
        }
    }

    /// Requests a page. A page that was already read fails the pull, because the pages form a loop.
    private mutating func ask(_ target: String) -> Action {
        guard asked.insert(target).inserted else { return .failed("the pages lead back to \(target)") }
        request.target = target
        return .ask(request)
    }

    private func finished() -> Action {
        .finished(
            DeltaOutcome(
                changes: Array(changes.values), cursor: issued ?? cursor, isFull: isFull, pages: asked.count, isNotStored: isNotStored))
    }

    /// Ends a pull at the limit: changes covered by the upstream's issued cursor are kept and the rest follows in the next pull. Time
    /// stamps cover nothing before the last page, so without an issued cursor the pull fails.
    private func cutShort() -> Action {
        guard let issued, !isFull else { return .failed("more than \(Self.changeLimit) changes or \(Self.pageLimit) pages") }
        return .finished(
            DeltaOutcome(changes: Array(changes.values), cursor: issued, isFull: false, pages: asked.count, isNotStored: isNotStored))
    }
}

// MARK: - Pages

/// A change of one entity (docs/outbox.md#delta-pull).
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
