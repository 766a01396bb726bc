// The timer of a connection's deadline (docs/security-model.md#slow-clients).
package import NIOCore
package import RockpoolCore

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
