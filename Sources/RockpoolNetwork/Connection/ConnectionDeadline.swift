// One timer per connection, moved by writing a number: what a client may keep us waiting for (security.md §4 *slow clients*).
import NIOCore
import RockpoolCore

/// What the connection waits for, and until when.
struct ConnectionDeadline {
    enum Phase: Equatable {
        /// The first byte of the next request.
        case idle
        /// The rest of a head.
        case head
        /// More of a request body.
        case body
        /// Our own answer: no deadline of the client's.
        case answering
        /// The client to take what we have written.
        case writing
        /// The client to close, after we have.
        case lingering
    }

    private(set) var phase = Phase.idle
    private(set) var at: NIODeadline
    private let timeouts: ClientTimeouts

    init(timeouts: ClientTimeouts, now: NIODeadline) {
        self.timeouts = timeouts
        self.at = now + .milliseconds(timeouts.idle.milliseconds)
    }

    /// Enters `phase`; entering the one it is in already renews the deadline, except for a head's, which is for the whole of it.
    mutating func enter(_ phase: Phase, now: NIODeadline) {
        if phase == .head, self.phase == .head { return }
        self.phase = phase
        at = now + limit(of: phase)
    }

    private func limit(of phase: Phase) -> TimeAmount {
        switch phase {
        case .idle: .milliseconds(timeouts.idle.milliseconds)
        case .head: .milliseconds(timeouts.head.milliseconds)
        case .body: .milliseconds(timeouts.body.milliseconds)
        case .writing: .milliseconds(timeouts.idle.milliseconds)
        case .lingering: .seconds(1)
        case .answering: .hours(24 * 365)
        }
    }
}
