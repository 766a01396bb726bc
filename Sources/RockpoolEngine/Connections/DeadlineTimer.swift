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
/// A task that fires before the deadline is scheduled again, so that the frequent extensions of a deadline cost no task.
package struct DeadlineTimer {
    private var deadline: ConnectionDeadline
    private var scheduled: Scheduled<Void>?
    private var firesAt = NIODeadline.distantFuture

    /// - Parameter bodyRate: the minimum rate of a body in bytes per second, once the timeout for a head has passed.
    package init(timeouts: ClientTimeouts, bodyRate: ByteCount) {
        deadline = ConnectionDeadline(timeouts: timeouts, bodyRate: bodyRate, now: .now())
    }

    /// The current phase of the connection.
    package var phase: ConnectionDeadline.Phase { deadline.phase }

    /// Enters `phase`, as `ConnectionDeadline.enter`. The task is not replaced before `ensureScheduled`.
    package mutating func enter(_ phase: ConnectionDeadline.Phase, now: NIODeadline = .now()) {
        deadline.enter(phase, now: now)
    }

    /// Extends the deadline for received bytes of a body, as `ConnectionDeadline.receive`.
    package mutating func receive(byteCount: Int) { deadline.receive(byteCount, now: .now()) }

    /// Renews the deadline after the proxy, not the client, had paused the body.
    package mutating func forgive() { deadline.forgive(now: .now()) }

    /// Schedules the task for the deadline.
    package mutating func schedule(for owner: any DeadlineTimerOwner, on loop: any EventLoop) {
        let owner = NIOLoopBound<any DeadlineTimerOwner>(owner, eventLoop: loop)
        firesAt = deadline.at
        scheduled = loop.scheduleTask(deadline: firesAt) { owner.value.timerFired() }
    }

    /// Replaces the task if it would fire after the deadline.
    package mutating func ensureScheduled(for owner: any DeadlineTimerOwner, on loop: any EventLoop) {
        guard deadline.at < firesAt else { return }
        scheduled?.cancel()
        schedule(for: owner, on: loop)
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
