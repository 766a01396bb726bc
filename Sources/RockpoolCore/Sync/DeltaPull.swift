// The state machine of one pull, from its first request to its last page (docs/outbox.md#delta-pull; docs/architecture.md#rules).
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
