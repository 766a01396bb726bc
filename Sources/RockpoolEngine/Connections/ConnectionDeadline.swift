// The timeouts of a client connection: one timer per connection, moved by writing a number (docs/security-model.md#slow-clients).
package import NIOCore
package import RockpoolCore

/// The phase of a connection, and the deadline for it.
package struct ConnectionDeadline {
    package enum Phase: Equatable {
        /// Waits for the first byte of the next request.
        case idle
        /// Waits for the rest of a head.
        case head
        /// Waits for more of a request body.
        case body
        /// The proxy prepares the response; the client has no deadline.
        case answering
        /// Waits for the client to read the written bytes.
        case writing
        /// Waits for the client to close after the proxy has.
        case lingering
    }

    package private(set) var phase = Phase.idle
    package private(set) var at: NIODeadline
    private let timeouts: ClientTimeouts
    /// Time by which each byte of a body extends `paidUntil`.
    private let nanosecondsPerByte: Int64
    /// Until when the body counts as fast enough: the timeout for a head, extended by each byte received since.
    private var paidUntil: NIODeadline

    /// - Parameter bodyRate: the minimum rate of a body in bytes per second, once the timeout for a head has passed.
    package init(timeouts: ClientTimeouts, bodyRate: ByteCount, now: NIODeadline) {
        self.timeouts = timeouts
        nanosecondsPerByte = 1_000_000_000 / max(1, bodyRate.bytes)
        at = now + .milliseconds(timeouts.idle.milliseconds)
        paidUntil = now
    }

    /// Enters `phase`. Entering the current phase again renews the deadline, except for `head`: its deadline covers the whole head.
    package mutating func enter(_ phase: Phase, now: NIODeadline) {
        if phase == .head, self.phase == .head { return }
        if phase == .body, self.phase != .body { paidUntil = now + limit(of: .head) }
        self.phase = phase
        at = now + limit(of: phase)
        if phase == .body { at = min(at, paidUntil) }
    }

    /// Extends the deadline for received bytes of a body. The credit is at most the longest timeout, so that a burst does not pay for a
    /// crawl.
    package mutating func receive(_ bytes: Int, now: NIODeadline) {
        let most = max(limit(of: .head), limit(of: .body))
        let bought = TimeAmount.nanoseconds(Int64(bytes).multipliedClamped(by: nanosecondsPerByte))
        paidUntil = min(paidUntil + min(bought, most), now + most)
        enter(.body, now: now)
    }

    /// Renews the deadline after the proxy, not the client, had paused the body.
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
