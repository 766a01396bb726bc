// A lock per cache key, whose holder does the work of those that wait.
import RockpoolCore
import Synchronization

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
