// The pause of a route whose writes are refused one like the other: a server that comes back broken must not use up the queue
// (docs/outbox.md#mass-refusal).
import HTTPTypes
import HeapModule

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
