// One timer per connection, moved by writing a number: what a client may keep us waiting for (docs/security-model.md#slow-clients).
package import NIOCore
package import RockpoolCore

/// What the connection waits for, and until when.
package struct ConnectionDeadline {
    package enum Phase: Equatable {
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

    package private(set) var phase = Phase.idle
    package private(set) var at: NIODeadline
    private let timeouts: ClientTimeouts
    /// What a byte of a body buys of time.
    private let nanosecondsPerByte: Int64
    /// Until when the body that is coming is fast enough: the time for a head, and what its bytes have bought since.
    private var paidUntil: NIODeadline

    /// - Parameter bodyRate: bytes a second that a body must come with, once the time for a head has passed.
    package init(timeouts: ClientTimeouts, bodyRate: ByteCount, now: NIODeadline) {
        self.timeouts = timeouts
        nanosecondsPerByte = 1_000_000_000 / max(1, bodyRate.bytes)
        at = now + .milliseconds(timeouts.idle.milliseconds)
        paidUntil = now
    }

    /// Enters `phase`; entering the one it is in already renews the deadline, except for a head's, which is for the whole of it.
    package mutating func enter(_ phase: Phase, now: NIODeadline) {
        if phase == .head, self.phase == .head { return }
        if phase == .body, self.phase != .body { paidUntil = now + limit(of: .head) }
        self.phase = phase
        at = now + limit(of: phase)
        if phase == .body { at = min(at, paidUntil) }
    }

    /// More of a body has come. It buys no more time than the longest wait: a burst does not pay for a crawl.
    package mutating func receive(_ bytes: Int, now: NIODeadline) {
        let most = max(limit(of: .head), limit(of: .body))
        let bought = TimeAmount.nanoseconds(Int64(bytes).multipliedClamped(by: nanosecondsPerByte))
        paidUntil = min(paidUntil + min(bought, most), now + most)
        enter(.body, now: now)
    }

    /// It was us who did not read: the client has its time again.
    package mutating func forgive(now: NIODeadline) {
        paidUntil = max(paidUntil, now + limit(of: .head))
        enter(.body, now: now)
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
