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

/// Informed when the timer fires, on the event loop of the connection.
package protocol DeadlineTimerOwner: AnyObject {
    /// Ends the connection or its request if `DeadlineTimer.passedPhase` returns a phase.
    func timerFired()
}

/// Holds the deadline of a connection and one scheduled task, which is replaced only if the deadline comes earlier.
///
/// A task that fires before the deadline is scheduled again, so that the frequent extensions of a deadline cost no task. It fires earlier for
/// a connection that is to rest.
package struct DeadlineTimer {
    private var deadline: ConnectionDeadline
    private var scheduled: Scheduled<Void>?
    private var firesAt = NIODeadline.distantFuture
    private let rest: TimeAmount?
    /// When the connection is to rest, if it is idle until then.
    private var restsAt: NIODeadline?

    /// - Parameters:
    ///   - bodyRate: the minimum rate of a body in bytes per second, once the timeout for a head has passed.
    ///   - rest: after how much idle time the connection is to rest; nil if it never rests.
    package init(timeouts: ClientTimeouts, bodyRate: ByteCount, rest: TimeAmount? = nil) {
        let now = NIODeadline.now()
        deadline = ConnectionDeadline(timeouts: timeouts, bodyRate: bodyRate, now: now)
        (self.rest, since) = (rest, now)
        restsAt = rest.map { now + $0 }
    }

    /// The current phase of the connection.
    package var phase: ConnectionDeadline.Phase { deadline.phase }

    /// When the current phase was entered, if it is `idle`.
    package private(set) var since: NIODeadline

    /// Enters `phase`, as `ConnectionDeadline.enter`. The task is not replaced before `ensureScheduled`.
    package mutating func enter(_ phase: ConnectionDeadline.Phase, now: NIODeadline = .now()) {
        deadline.enter(phase, now: now)
        guard let rest else { return }
        restsAt = phase == .idle ? now + rest : nil
        since = now
    }

    /// Extends the deadline for received bytes of a body, as `ConnectionDeadline.receive`.
    package mutating func receive(byteCount: Int) { deadline.receive(byteCount, now: .now()) }

    /// Renews the deadline after the proxy, not the client, had paused the body.
    package mutating func forgive() { deadline.forgive(now: .now()) }

    /// Schedules the task for the deadline.
    package mutating func schedule(for owner: any DeadlineTimerOwner, on loop: any EventLoop) {
        let owner = NIOLoopBound<any DeadlineTimerOwner>(owner, eventLoop: loop)
        firesAt = next
        scheduled = loop.scheduleTask(deadline: firesAt) { owner.value.timerFired() }
    }

    /// Replaces the task if it would fire after the deadline.
    package mutating func ensureScheduled(for owner: any DeadlineTimerOwner, on loop: any EventLoop) {
        guard next < firesAt else { return }
        scheduled?.cancel()
        schedule(for: owner, on: loop)
    }

    private var next: NIODeadline { min(deadline.at, restsAt ?? .distantFuture) }

    /// Returns true if the connection is to rest now. It is not asked to again before the next request has ended.
    package mutating func isToRest() -> Bool {
        guard let restsAt, restsAt <= .now() else { return false }
        self.restsAt = nil
        return true
    }

    /// Returns the phase that has lasted too long. Returns nil, and schedules the task again, if the deadline was extended in the meantime.
    package mutating func passedPhase(for owner: any DeadlineTimerOwner, on loop: any EventLoop) -> ConnectionDeadline.Phase? {
        firesAt = .distantFuture
        if deadline.at <= .now() { return deadline.phase }
        schedule(for: owner, on: loop)
        return nil
    }

    /// Cancels the task.
    package func cancel() { scheduled?.cancel() }
}
