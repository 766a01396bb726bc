// One fetch for concurrent requests of the same key: request collapsing (RFC 9111 §4, docs/architecture.md#journeys "one in flight per
// key").
import RockpoolCore
import Synchronization

/// A running fetch and the requests that wait for its head. The fetch has its own task, so a client that leaves does not end it for the
/// others. If the last one leaves before the head has arrived, the task is cancelled.
final class CoalescedFetch: Sendable {
    private struct State {
        var report: FetchReport?
        /// The leader's body, until the leader takes it or leaves.
        var claim: LeaderBody?
        var isLed = true
        var waiting: [Int: CheckedContinuation<FetchReport?, Never>] = [:]
        var arrivals = 0
        /// Number of requests that have not left, initially the leader.
        var interested = 1
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// Starts the fetch. Called once, by the leader.
    func start(_ fetch: @escaping @Sendable () async -> FetchReport) {
        let task = Task { self.publish(await fetch()) }
        state.withLock { $0.task = task }
    }

    /// Returns the outcome to the leader, with the body; nil if the leader's task was cancelled while it waited.
    func ledReport() async -> FetchReport? {
        guard var report = await report(isNew: false) else {
            let claim = state.withLock { state in
                state.isLed = false
                defer { state.claim = nil }
                return state.claim
            }
            _ = claim
            return nil
        }
        report.outcome.give(
            state.withLock { state in
                defer { state.claim = nil }
                return state.claim
            })
        return report
    }

    /// Returns the outcome to a follower; nil if the follower's task was cancelled while it waited.
    func report() async -> FetchReport? { await report(isNew: true) }

    private func report(isNew: Bool) async -> FetchReport? {
        let (known, number) = state.withLock { state in
            state.arrivals += 1
            if isNew { state.interested += 1 }
            return (state.report, state.arrivals)
        }
        if let known { return known }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known: FetchReport?? = state.withLock { state in
                    if let report = state.report { return .some(report) }
                    if Task.isCancelled { return .some(nil) }
                    state.waiting[number] = continuation
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            leave(number)
        }
    }

    /// Number of requests that wait for the head.
    var waiting: Int { state.withLock(\.waiting.count) }

    private func publish(_ report: FetchReport) {
        var report = report
        let claim = report.outcome.takeClaim()
        let (waiting, dropped) = state.withLock { state -> ([CheckedContinuation<FetchReport?, Never>], LeaderBody?) in
            state.report = report
            defer { state.waiting = [:] }
            guard state.isLed else { return (Array(state.waiting.values), claim) }
            state.claim = claim
            return (Array(state.waiting.values), nil)
        }
        _ = dropped
        for continuation in waiting { continuation.resume(returning: report) }
    }

    private func leave(_ number: Int) {
        let (continuation, task) = state.withLock { state -> (CheckedContinuation<FetchReport?, Never>?, Task<Void, Never>?) in
            state.interested -= 1
            let isNeeded = state.interested > 0 || state.report != nil
            return (state.waiting.removeValue(forKey: number), isNeeded ? nil : state.task)
        }
        continuation?.resume(returning: nil)
        task?.cancel()
    }
}

/// The outcome of a fetch, and its steps for the leader's trace.
struct FetchReport: Sendable {
    var outcome: FetchOutcome
    let steps: ArraySlice<Trace.Step>
}
