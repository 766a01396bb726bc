// The running fetches by key, each for all concurrent requests of that key: request collapsing (RFC 9111 §4, docs/architecture.md#journeys
// "one in flight per key").
import RockpoolCore
import Synchronization

/// All coalesced fetches of the server. One lock, held for a dictionary access.
final class InFlightFetches: Sendable {
    /// The role of a request that must be forwarded.
    enum Place: Sendable {
        /// No fetch is running: send the request, and `leave` the table when the response can be found in the store.
        case lead(CoalescedFetch)
        case follow(CoalescedFetch)
        /// A fetch for this key has ended since lookup: read the store again.
        case lookAgain
        /// Send a separate request: responses of this key could not be shared lately, or the request may not follow the running fetch.
        case alone
    }

    private struct State {
        var fetches: [FetchKey: CoalescedFetch] = [:]
        var refreshes: Set<FetchKey> = []
        var uncollapsible = HitForMissKeys()
        /// Counts completed fetches per hash slot; a caller with an old epoch must read the store again instead of leading a new fetch.
        var epochs = [UInt64](repeating: 0, count: 1024)
    }

    private let state = Mutex(State())

    /// Returns the current epoch. Read it before lookup.
    func epoch(of key: CacheKey) -> UInt64 { state.withLock { $0.epochs[Self.slot(of: key)] } }

    /// - Parameters:
    ///   - epoch: The epoch of the key's base from before lookup; nil if the store must not be read again.
    ///   - mayFollow: True if the response to another request is acceptable.
    func join(at key: FetchKey, since epoch: UInt64?, mayFollow: Bool, now: Moment) -> Place {
        state.withLock { state in
            if state.uncollapsible.contains(key.base, now: now.at) { return .alone }
            if let fetch = state.fetches[key] { return mayFollow ? .follow(fetch) : .alone }
            guard epoch == nil || state.epochs[Self.slot(of: key.base)] == epoch else { return .lookAgain }
            let fetch = CoalescedFetch(at: now.tick)
            state.fetches[key] = fetch
            return .lead(fetch)
        }
    }

    /// True if responses of a key could not be shared lately.
    func isUncollapsible(at key: CacheKey, now: Timestamp) -> Bool { state.withLock { $0.uncollapsible.contains(key, now: now) } }

    /// Returns the running fetch of a key, for a request that may read along but neither leads nor waits for the next fetch.
    func underWay(at key: FetchKey) -> CoalescedFetch? { state.withLock { $0.fetches[key] } }

    /// Registers a background refresh, which ends with `endRefresh`. Returns false if a fetch or refresh of the key is running.
    func beginRefresh(of key: FetchKey) -> Bool {
        state.withLock { $0.fetches[key] == nil && $0.refreshes.insert(key).inserted }
    }

    /// Number of running refreshes.
    var refreshing: Int { state.withLock(\.refreshes.count) }

    func endRefresh(of key: FetchKey) { state.withLock { _ = $0.refreshes.remove(key) } }

    /// Removes a fetch that has ended; its response, if stored, can be found in the store.
    func leave(key: FetchKey) {
        state.withLock { state in
            state.fetches[key] = nil
            state.epochs[Self.slot(of: key.base)] &+= 1
        }
    }

    /// Records that the store has changed for a key.
    func touch(_ key: CacheKey) { state.withLock { $0.epochs[Self.slot(of: key)] &+= 1 } }

    /// Records that a response could not be shared, so that the next requests do not wait for one.
    func note(uncollapsible key: CacheKey, now: Timestamp) { state.withLock { $0.uncollapsible.note(key, now: now) } }

    /// Number of requests that wait for a response head.
    var waiting: Int { state.withLock { $0.fetches.values.reduce(0) { $0 + $1.waiting } } }

    private static func slot(of key: CacheKey) -> Int { key.hashValue & 1023 }
}

// MARK: - One fetch

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
    /// When it began.
    let startedAt: Tick

    /// - Parameter now: for a fetch that others may follow.
    init(at now: Tick = .first) { startedAt = now }

    /// Starts the fetch. Called once, by the leader.
    /// - Parameter executor: runs it where the leader runs, so that no thread is woken for it; nil for the shared threads.
    func start(on executor: (any TaskExecutor)? = nil, _ fetch: @escaping @Sendable () async -> FetchReport) {
        let task = Task(executorPreference: executor) { self.publish(await fetch()) }
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
            leave(waiter: number)
        }
    }

    /// Number of requests that wait for the head.
    var waiting: Int { state.withLock(\.waiting.count) }

    /// Ends a fetch that was not started. The requests that wait for it read the store again.
    func giveUp() { publish(.nothing) }

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

    private func leave(waiter number: Int) {
        let (continuation, task) = state.withLock { state -> (CheckedContinuation<FetchReport?, Never>?, Task<Void, Never>?) in
            state.interested -= 1
            let isNeeded = state.interested > 0 || state.report != nil
            return (state.waiting.removeValue(forKey: number), isNeeded ? nil : state.task)
        }
        continuation?.resume(returning: nil)
        task?.cancel()
    }
}

/// Who leads a fetch before the pipeline does.
protocol FetchLead: Sendable {
    /// Hands the lead over, once, if it is about this key.
    func takeLead(of key: FetchKey) -> CoalescedFetch?
}

/// The outcome of a fetch, and its steps for the leader's trace.
struct FetchReport: Sendable {
    /// No response to share: the store is read again.
    static let nothing = FetchReport(outcome: .failed(.cancelled), steps: [])

    var outcome: FetchOutcome
    let steps: ArraySlice<Trace.Entry>
}

// MARK: - Turns

/// Grants each key to one task at a time, in order of arrival.
final class KeyTurns<Key: Hashable & Sendable>: Sendable {
    /// The tasks that wait for each taken key.
    private let waiting = Mutex<[Key: [CheckedContinuation<Void, Never>]]>([:])

    /// Waits until the key is free, and takes it. `leave` must follow.
    func enter(key: Key) async {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func leave(key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            guard var queue = waiting[key], !queue.isEmpty else {
                waiting[key] = nil
                return nil
            }
            let next = queue.removeFirst()
            waiting[key] = queue
            return next
        }
        next?.resume()
    }
}

/// Grants each key to one task at a time. The jobs that have arrived meanwhile go to the next one together.
final class GatheredTurns<Job: Sendable>: Sendable {
    /// The jobs of one turn, in order of arrival, the holder's first.
    struct Group: Sendable {
        let jobs: [Job]
        /// The tasks whose jobs the holder does.
        fileprivate let others: [CheckedContinuation<Group?, Never>]
    }

    private struct Waiter {
        let job: Job
        let continuation: CheckedContinuation<Group?, Never>
    }

    /// The maximum number of jobs of one turn.
    private let limit: Int
    /// The tasks that wait for each taken key.
    private let waiting = Mutex<[CacheKey: [Waiter]]>([:])

    init(limit: Int = 256) { self.limit = limit }

    /// Waits until the key is free, and takes it; `leave` must follow.
    /// - Returns: the jobs to do; nil if another task has done this one.
    func enter(_ job: Job, key: CacheKey) async -> Group? {
        await withCheckedContinuation { continuation in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] != nil else {
                    waiting[key] = []
                    return true
                }
                waiting[key]?.append(Waiter(job: job, continuation: continuation))
                return false
            }
            if isFree { continuation.resume(returning: Group(jobs: [job], others: [])) }
        }
    }

    /// The number of tasks that wait for a key.
    func waitingCount(for key: CacheKey) -> Int { waiting.withLock { $0[key]?.count ?? 0 } }

    /// Ends a turn, whose jobs are done.
    func leave(_ group: Group, key: CacheKey) {
        let next = waiting.withLock { waiting -> [Waiter] in
            guard let queue = waiting[key], !queue.isEmpty else {
                waiting[key] = nil
                return []
            }
            waiting[key] = Array(queue.dropFirst(limit))
            return Array(queue.prefix(limit))
        }
        for other in group.others { other.resume(returning: nil) }
        guard let holder = next.first else { return }
        holder.continuation.resume(returning: Group(jobs: next.map(\.job), others: next.dropFirst().map(\.continuation)))
    }
}
