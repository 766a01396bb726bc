// The concurrency limit of one upstream: nothing while it is unreachable or throttles, then one, two, four … (docs/outbox.md#gate).
import HeapModule

/// The gate of one upstream: a circuit breaker with a ramp.
struct UpstreamThrottle: Sendable {
    /// The maximum number of concurrent operations per upstream: a slow upstream does not block another.
    static let widest = 32

    private(set) var isReachable = false
    /// The end of a pause that the upstream requested (429, 503).
    private(set) var pausedUntil: Timestamp?
    /// The current concurrency limit; doubles with every effect, and falls back to one after a refusal, a failure, a pause or a change of
    /// reachability.
    private(set) var width = 1
    /// True if a write has taken effect since the upstream became reachable.
    private(set) var hasEffect = false
    /// The operations in flight, by id: their numbers may change meanwhile.
    private(set) var underWay: Set<UUIDText> = []
    /// Open operations that are pending, uncertain or in flight.
    var waiting = 0
    /// Operations that may be sent, lowest rank first. Tickets may be out of date.
    var ready = Heap<ReplayMachine.Ticket>()
    /// The recent refusals of each route, and its pause.
    var watches: [String: RouteWatch] = [:]
    /// Operations that are sent although their route pauses.
    var urged: Set<Int64> = []
    /// Where writes were redirected that it did not apply.
    var commonPlaces = CommonPlaces()

    /// The number of operations in flight.
    var running: Int { underWay.count }

    mutating func forgetOperations() {
        (underWay, waiting, ready, urged) = ([], 0, Heap(), [])
        for route in watches.keys { watches[route]?.held = Heap() }
    }

    mutating func mayPass(now: Timestamp) -> Bool {
        if let pausedUntil, pausedUntil <= now { self.pausedUntil = nil }
        return isReachable && running < width && pausedUntil == nil
    }

    mutating func turned(isReachable: Bool, now: Timestamp) {
        if isReachable != self.isReachable { (width, hasEffect) = (1, false) }
        if isReachable, !self.isReachable { for route in watches.keys { watches[route]?.cameBack(now: now) } }
        self.isReachable = isReachable
    }

    // MARK: routes

    /// The pauses of its routes.
    var routePauses: [RoutePause] { watches.values.compactMap(\.pause) }

    /// The time at which a write of a paused route is tried; nil without one, and while it could not be sent.
    var nextTest: Timestamp? {
        guard isReachable, pausedUntil == nil, running < width else { return nil }
        return watches.values.lazy.filter { !$0.held.isEmpty }.compactMap(\.pause?.nextTest).min()
    }

    /// Notes what the answer to a write says about its route, and releases what waited for that.
    mutating func note(_ sign: RouteSign, of operation: UUIDText?, client: String, route: String, now: Timestamp) {
        if sign == .effect { hasEffect = true }
        guard sign != .nothing, watches[route] != nil || operation != nil && sign != .effect else { return }
        watches[route, default: RouteWatch()].note(sign, of: operation, client: client, route: route, now: now)
        release(route)
    }

    /// True if the route of an operation pauses for its client.
    func pauses(_ operation: OperationSummary) -> Bool {
        watches[operation.watchedRoute]?.pause?.concerns(operation.client) ?? false
    }

    /// Notes that an operation was not sent after all. Where its route pauses, another one is tried in its place.
    mutating func unsent(_ operation: OperationSummary, now: Timestamp) {
        if pauses(operation) { watches[operation.watchedRoute]?.cancelTest(now: now) }
    }

    /// Keeps back the ticket of an operation whose route pauses. Returns false if it may be sent.
    mutating func keepsBack(_ ticket: ReplayMachine.Ticket, of operation: OperationSummary) -> Bool {
        guard pauses(operation), urged.remove(ticket.sequence) == nil else { return false }
        watches[operation.watchedRoute]?.held.insert(ticket)
        return true
    }

    /// Ends the pause of every route.
    mutating func endRoutePauses() {
        for route in Array(watches.keys) {
            watches[route]?.end()
            release(route)
        }
    }

    /// Lets one operation be sent although its route pauses.
    mutating func urge(_ sequence: Int64, of route: String) {
        guard let watch = watches[route], watch.pause != nil else { return }
        urged.insert(sequence)
        // Its ticket may be among those kept back: all are looked at once more.
        for ticket in watch.held.unordered { ready.insert(ticket) }
        watches[route]?.held = Heap()
    }

    private mutating func release(_ route: String) {
        guard let watch = watches[route], watch.pause == nil else { return }
        for ticket in watch.held.unordered { ready.insert(ticket) }
        watches[route]?.held = Heap()
        if watches[route]?.isIdle == true { watches[route] = nil }
        if watches.isEmpty { urged = [] }
    }

    mutating func left(_ operation: UUIDText) { underWay.insert(operation) }

    /// No effect for one that is not in flight.
    mutating func came(_ operation: UUIDText) { underWay.remove(operation) }

    /// Gives an operation another number.
    mutating func renumber(_ old: Int64, to new: Int64) { if urged.remove(old) != nil { urged.insert(new) } }

    /// Widens the gate after an effect, and narrows it after anything else.
    mutating func learn(from disposition: Disposition) {
        width = disposition.state == .delivered && !disposition.isCaptive ? min(Self.widest, width * 2) : 1
    }

    /// Shifts all times after the wall clock was set back.
    mutating func setBack(by span: TimeSpan) {
        pausedUntil = pausedUntil.map { $0 - span }
        for route in watches.keys { watches[route]?.setBack(by: span) }
    }

    mutating func resume() { pausedUntil = nil }

    mutating func pause(until moment: Timestamp) {
        pausedUntil = max(pausedUntil ?? moment, moment)
        width = 1
    }
}
