// What holds back the writes to one upstream: its concurrency limit, the pauses that it demands (docs/outbox.md#gate), and those after
// mass refusals (docs/outbox.md#mass-refusal).
import HTTPTypes
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

    // MARK: - Routes

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

// MARK: - Pauses of clients

/// Until when each client waits. The clients beyond the limit whose pauses end first are forgotten.
struct ClientPauses: Sendable {
    private static let limit = 1024

    private struct Pause {
        let until: Timestamp
        let isProved: Bool
    }

    private var pauses: [String: Pause] = [:]

    /// The end of the longest pause; nil without any.
    var longest: Timestamp? { pauses.values.map(\.until).max() }

    /// Until when this client waits; nil if it was told nothing.
    func end(for client: String) -> Timestamp? { pauses[client]?.until }

    /// Notes what the upstream has told a client.
    ///
    /// - Parameter isProved: true if the upstream has accepted the client's credential. All others count as one: anybody can be many of them.
    /// - Returns: until when all clients wait, because another one was told the same; nil if no other was.
    mutating func tell(_ client: String, isProved: Bool, until moment: Timestamp, now: Timestamp) -> Timestamp? {
        pauses = pauses.filter { $0.value.until > now }
        if pauses.count >= Self.limit, pauses[client] == nil, let first = pauses.min(by: { $0.value.until < $1.value.until }) {
            pauses[first.key] = nil
        }
        let until = max(pauses[client]?.until ?? moment, moment)
        pauses[client] = Pause(until: until, isProved: isProved)
        let others = pauses.filter { $0.key != client && ($0.value.isProved || isProved) }
        return others.values.map(\.until).max().map { min($0, until) }
    }

    /// Shifts all ends after the wall clock was set back.
    mutating func setBack(by span: TimeSpan) {
        pauses = pauses.mapValues { Pause(until: $0.until - span, isProved: $0.isProved) }
    }
}

// MARK: - Pauses of routes

/// What the answer to one write says about the others of its route.
package enum RouteSign: Hashable, Sendable {
    /// The write took effect.
    case effect
    /// It was refused, or its effect is unknown. Equal causes are equal: the status, for a refusal of content also the answer's body.
    case refusal(cause: String, content: Int = 0)
    /// The answer concerns this write alone, or none was made: it was not sent, is sent later, or waits for a credential.
    case nothing

    /// The cause of every server error and every lost answer: a server that starts gives them in turn.
    static let failure = RouteSign.refusal(cause: "a server error, or no answer")

    /// Reads the outcome of an attempt with its disposition. `body` is the beginning of the answer's body.
    package init(_ outcome: AttemptOutcome, body: [UInt8], disposition: Disposition) {
        // A conflict concerns one entity.
        if disposition.isCaptive || disposition.state == .conflicted {
            self = .nothing
        } else if disposition.state == .delivered {
            self = .effect
        } else {
            switch outcome {
            case .failed(let failure): self = failure.sent == .no || failure.kind == .damaged ? .nothing : .failure
            case .answered(let head): self = disposition.countsAsAnswered ? Self.refusal(head, body) : .nothing
            }
        }
    }

    private static func refusal(_ head: ResponseHead, _ body: [UInt8]) -> RouteSign {
        switch head.status {
        // Another version of one entity: the conflict is merged and sent again.
        case 409, 412, 423, 424, 428: .nothing
        case 500...599: .failure
        case 300...399: .refusal(cause: "\(head.status)", content: (head.fields[.location] ?? "").hashValue)
        // These do not depend on what was sent.
        case 401, 402, 403, 404, 405, 407, 410, 419: .refusal(cause: "\(head.status)")
        default: .refusal(cause: "\(head.status)", content: body.hashValue)
        }
    }
}

/// The refusals of one route, and its pause. Effects end both.
///
/// A pause concerns the client whose writes were refused, who may be refused for what it is. It concerns everybody once another client has
/// been refused alike.
struct RouteWatch: Sendable {
    /// Equal refusals of different writes that begin a pause.
    static let threshold = 3
    /// The time within which they must be.
    static let window = TimeSpan.minutes(1)
    /// The time until the first write is tried, and the longest between two. It doubles in between.
    static let firstWait = TimeSpan.seconds(3), longestWait = TimeSpan.seconds(30)
    /// Refusals that are remembered.
    private static let capacity = 64

    private struct Seen: Sendable {
        var sign: RouteSign
        var client: String
        var operation: UUIDText
        var at: Timestamp
    }

    private var seen: [Seen] = []
    private var tests = 0
    private(set) var pause: RoutePause?
    /// The sign of the refusals that began the pause.
    private var cause = RouteSign.nothing
    /// What would be sent next if there were no pause. Tickets may be out of date.
    var held = Heap<ReplayMachine.Ticket>()

    /// True if it can be forgotten.
    var isIdle: Bool { seen.isEmpty && pause == nil && held.isEmpty }

    /// Notes a sign.
    /// - Parameter operation: nil for a write that is not in the outbox.
    mutating func note(_ sign: RouteSign, of operation: UUIDText?, client: String, route: String, now: Timestamp) {
        switch sign {
        case .nothing: break
        case .effect: if pause?.concerns(client) ?? true { end() }
        case .refusal(let cause, _):
            guard let operation else { return }
            seen.removeAll { now - $0.at > Self.window || $0.at > now || $0.operation == operation }
            if let known = pause {
                if sign == self.cause, !known.concerns(client) { pause?.client = nil }
                return
            }
            seen = Array(seen.suffix(Self.capacity - 1)) + [Seen(sign: sign, client: client, operation: operation, at: now)]
            let equal = seen.filter { $0.sign == sign }
            guard equal.count >= Self.threshold else { return }
            (seen, tests, self.cause) = ([], 0, sign)
            pause = RoutePause(
                route: route, client: equal.allSatisfy { $0.client == client } ? client : nil, cause: cause, since: now,
                nextTest: now + Self.firstWait)
        }
    }

    mutating func end() { (seen, tests, pause, cause) = ([], 0, nil, .nothing) }

    /// Begins the waits anew: the upstream was away.
    mutating func cameBack(now: Timestamp) {
        tests = 0
        if let next = pause?.nextTest { pause?.nextTest = min(next, now + Self.firstWait) }
    }

    /// True if a write may be tried now.
    func isTestDue(now: Timestamp) -> Bool { pause.map { $0.nextTest <= now } ?? false }

    /// Records that a write is tried.
    mutating func test(now: Timestamp) {
        tests = min(tests + 1, 16)
        pause?.nextTest = now + min(Self.longestWait, TimeSpan(milliseconds: Self.firstWait.milliseconds << Int64(tests)))
    }

    /// Takes back a test whose write could not be sent: the next one is tried at once.
    mutating func cancelTest(now: Timestamp) {
        tests = max(0, tests - 1)
        pause?.nextTest = now
    }

    /// Shifts its times after the wall clock was set back.
    mutating func setBack(by span: TimeSpan) {
        for index in seen.indices { seen[index].at = seen[index].at - span }
        pause?.setBack(by: span)
    }
}

extension OperationSummary {
    /// The route whose refusals concern this write: the configured one, else the declared resource, else all other paths by method. A server
    /// that refuses everything thus pauses after three writes, not after three for each path.
    package var watchedRoute: String { route ?? collection ?? method.rawValue }
}
