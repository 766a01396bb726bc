// One pull from its first request to its last page, as a machine (outbox.md §1.11; design §4.2).
package import HTTPTypes
import OrderedCollections

/// What a pull that came to its end has brought.
package struct DeltaOutcome: Hashable, Sendable {
    /// One for each entity, the last that was said of it, in the upstream's order.
    package var changes: [DeltaChange]
    /// Where the next pull goes on; nil when the upstream has shown none.
    package var cursor: DeltaCursor?
    /// Whether everything there is was listed: what is not among `changes` is gone.
    package var isFull: Bool
    /// Requests it took.
    package var pages: Int
}

/// A pull under way. The shell sends what it asks for and hands back what comes; a lost answer ends it with nothing taken, so that
/// the cursor stays where it was.
package struct DeltaPull: Sendable {
    /// What to do next.
    package enum Action: Hashable, Sendable {
        /// Send this.
        case ask(RequestHead)
        case finished(DeltaOutcome)
        /// Nothing is taken; in words why.
        case failed(String)
    }

    /// Pages of one pull at most.
    package static let pageLimit = 1000
    /// Entities of one pull at most.
    package static let changeLimit = 100_000

    private let shape: DeltaShape
    private let isFull: Bool
    private var request: RequestHead
    private var cursor: DeltaCursor?
    private var issued: DeltaCursor?
    private var asked: Set<String> = []
    private var changes: OrderedDictionary<String, DeltaChange> = [:]

    /// - Parameters:
    ///   - base: method, origin and fields of the requests; its target is not looked at.
    ///   - since: where the last pull ended; nil lists everything.
    ///   - isFull: lists everything although there is a cursor.
    package init(_ shape: DeltaShape, base: RequestHead, since: DeltaCursor?, isFull: Bool) {
        self.shape = shape
        self.isFull = isFull || since == nil
        cursor = since
        request = base
    }

    /// The first request.
    package mutating func start() -> Action {
        ask(shape.template.target(after: isFull ? nil : cursor?.asked()))
    }

    /// Takes an answer of status 200: its body and fields.
    package mutating func received(_ body: [UInt8], _ fields: HTTPFields) -> Action {
        let page: DeltaPage
        do {
            page = try DeltaPage(body, fields, to: request, shape)
        } catch {
            return .failed(error.detail)
        }
        for change in page.changes { changes[change.id] = change }
        cursor = DeltaCursor.later(cursor, page.latest)
        issued = page.issued ?? issued
        guard let continuation = page.continuation else { return finished() }
        if changes.count > Self.changeLimit || asked.count >= Self.pageLimit { return cutShort() }
        switch continuation {
        case .target(let target): return ask(target)
        case .cursor(let cursor): return ask(shape.template.target(after: cursor.text))
        }
    }

    /// A page that leads back to one already read ends the pull: it would go round for ever.
    private mutating func ask(_ target: String) -> Action {
        guard asked.insert(target).inserted else { return .failed("the pages lead back to \(target)") }
        request.target = target
        return .ask(request)
    }

    private func finished() -> Action {
        .finished(DeltaOutcome(changes: Array(changes.values), cursor: issued ?? cursor, isFull: isFull, pages: asked.count))
    }

    /// What the upstream's own cursor covers is taken, and the rest comes next time; moments cover nothing before the last page.
    private func cutShort() -> Action {
        guard let issued, !isFull else { return .failed("more than \(Self.changeLimit) changes or \(Self.pageLimit) pages") }
        return .finished(DeltaOutcome(changes: Array(changes.values), cursor: issued, isFull: false, pages: asked.count))
    }
}
