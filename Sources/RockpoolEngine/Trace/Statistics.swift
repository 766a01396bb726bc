// Counters since the start of the server, fed by traces alone (contract §4 `/v1/stats`).
import Synchronization

/// Counts exchanges by verdict.
package final class Statistics: Sendable {
    private let counts = Mutex<[Trace.Verdict: Int]>([:])
    /// Hits answered before they became exchanges: a number of their own, so that they take no lock.
    private let hot = Atomic<Int>(0)

    package init() {}

    package func count(_ trace: Trace) { counts.withLock { $0[trace.verdict, default: 0] += 1 } }

    /// Hits that were answered without the full way; `hit` counts them too.
    package var hotHits: Int { hot.load(ordering: .relaxed) }

    /// Counts one hot hit.
    package func countHotHit() { hot.wrappingAdd(1, ordering: .relaxed) }

    /// Exchanges that ended with `verdict` since the start.
    package subscript(verdict: Trace.Verdict) -> Int {
        counts.withLock { $0[verdict, default: 0] } + (verdict == .hit ? hotHits : 0)
    }

    package var total: Int { Trace.Verdict.allCases.reduce(0) { $0 + self[$1] } }

    /// Hits, stale, revalidated and collapsed ones among the reads the cache was asked for; 0 before the first.
    package var hitRatio: Double {
        let served = self[.hit] + self[.stale] + self[.revalidated] + self[.collapsed]
        let asked = served + self[.miss]
        return asked == 0 ? 0 : Double(served) / Double(asked)
    }
}
