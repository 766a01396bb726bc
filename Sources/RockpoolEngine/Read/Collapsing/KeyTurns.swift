// A lock per key.
import Synchronization

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
