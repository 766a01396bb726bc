// One at a time for each cache key.
import RockpoolCore
import Synchronization

/// Gives each key to one task after the other.
final class KeyTurns: Sendable {
    /// The tasks that wait for a key that is taken.
    private let waiting = Mutex<[CacheKey: [CheckedContinuation<Void, Never>]]>([:])

    /// Waits until the key is free, and takes it. To be followed by `leave`.
    func enter(_ key: CacheKey) async {
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

    func leave(_ key: CacheKey) {
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
