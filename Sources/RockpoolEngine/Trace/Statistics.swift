// Counters since the start of the server, fed by traces alone (contract §4 `/v1/stats`).
import Synchronization

/// Counts exchanges by verdict.
package final class Statistics: Sendable {
    private let counts = Mutex<[Trace.Verdict: Int]>([:])

    package init() {}

    package func count(_ trace: Trace) { counts.withLock { $0[trace.verdict, default: 0] += 1 } }

    /// Exchanges that ended with `verdict` since the start.
    package subscript(verdict: Trace.Verdict) -> Int { counts.withLock { $0[verdict, default: 0] } }

    package var total: Int { counts.withLock { $0.values.reduce(0, +) } }

    /// Hits, stale and revalidated ones among the reads the cache was asked for; 0 before the first.
    package var hitRatio: Double {
        counts.withLock { counts in
            let served = [Trace.Verdict.hit, .stale, .revalidated].reduce(0) { $0 + counts[$1, default: 0] }
            let asked = served + counts[.miss, default: 0]
            return asked == 0 ? 0 : Double(served) / Double(asked)
        }
    }
}
