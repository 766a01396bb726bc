// Random numbers, and the new identifiers of operations and conflicts.
import Glibc
import RockpoolCore
import Synchronization

/// The random numbers of the system, fetched many at a time: a system call for each takes longer than what is made of it.
struct SystemNumbers: RandomNumberGenerator {
    /// As many as `getentropy` gives at a time.
    private static let count = 32
    private static let held = Mutex<[UInt64]>([])

    func next() -> UInt64 {
        Self.held.withLock { held in
            if held.isEmpty { held = Self.fetched() }
            return held.removeLast()
        }
    }

    private static func fetched() -> [UInt64] {
        var numbers = [UInt64](repeating: 0, count: count)
        let isFilled = unsafe numbers.withUnsafeMutableBytes { unsafe getentropy($0.baseAddress, $0.count) == 0 }
        var system = SystemRandomNumberGenerator()
        return isFilled ? numbers : numbers.map { _ in system.next() }
    }
}

extension UUIDv7 {
    /// Returns a new random identifier.
    static func make(at now: Timestamp) -> String {
        let source = SystemNumbers()
        return make(now: now, random: (source.next(), source.next()))
    }
}
