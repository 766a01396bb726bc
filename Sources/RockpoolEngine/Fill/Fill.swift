// One fetch for everybody who asks for the same at the same time: request collapsing (RFC 9111 §4, docs/architecture.md#journeys "one in
// flight per key").
import RockpoolCore
import Synchronization

/// A fetch under way and those who wait for its head. It runs in a task of its own, so that no client's leaving ends it for the
/// others; when the last of them has left before the head has come, it is cancelled.
final class Fill: Sendable {
    private struct State {
        var report: FetchReport?
        /// The body for the leader, until it takes it or leaves.
        var claim: Claim?
        var isLed = true
        var waiting: [Int: CheckedContinuation<FetchReport?, Never>] = [:]
        var arrivals = 0
        /// Those who have not left; the leader from the beginning.
        var interested = 1
        var task: Task<Void, Never>?
    }

    private let state = Mutex(State())

    /// Starts the fetch. Called once, by the leader.
    func start(_ fetch: @escaping @Sendable () async -> FetchReport) {
        let task = Task { self.publish(await fetch()) }
        state.withLock { $0.task = task }
    }

    /// What came of it, for the leader, with the body; nil when its task was cancelled while it waited.
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

    /// What came of it, for a follower; nil when the asking task was cancelled while it waited.
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

    /// How many wait for it.
    var waiting: Int { state.withLock(\.waiting.count) }

    private func publish(_ report: FetchReport) {
        var report = report
        let claim = report.outcome.takeClaim()
        let (waiting, dropped) = state.withLock { state -> ([CheckedContinuation<FetchReport?, Never>], Claim?) in
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

/// What a fetch came to, and its steps for the trace of whoever led it.
struct FetchReport: Sendable {
    var outcome: FetchOutcome
    let steps: ArraySlice<Trace.Step>
}
