// Counters since the start of the server, fed by traces alone (docs/reference/admin-api.md#status `/v1/stats`).
package import RockpoolCore
import Synchronization

/// Counts exchanges by verdict, and how long their heads took.
package final class Statistics: Sendable {
    private struct State {
        var counts: [Trace.Verdict: Int] = [:]
        var latencies: [Trace.Verdict: LatencyHistogram] = [:]
    }

    private let state = Mutex(State())
    /// Hits answered before they became exchanges: a number of their own, so that they take no lock.
    private let hot = Atomic<Int>(0)

    package init() {}

    /// Counts one exchange that took `duration` from its head received to its reply's head ready.
    package func count(_ trace: Trace, took duration: Duration = .zero) {
        let seconds = duration / .seconds(1)
        state.withLock {
            $0.counts[trace.verdict, default: 0] += 1
            $0.latencies[trace.verdict, default: LatencyHistogram()].record(seconds: seconds)
        }
    }

    /// How long exchanges took, by verdict. Hot hits are not among them: they are too short to be timed for nothing.
    package var latencies: [Trace.Verdict: LatencyHistogram] { state.withLock(\.latencies) }

    /// Hits that were answered without the full way; `hit` counts them too.
    package var hotHits: Int { hot.load(ordering: .relaxed) }

    /// Counts one hot hit.
    package func countHotHit() { hot.wrappingAdd(1, ordering: .relaxed) }

    /// Exchanges that ended with `verdict` since the start.
    package subscript(verdict: Trace.Verdict) -> Int {
        state.withLock { $0.counts[verdict, default: 0] } + (verdict == .hit ? hotHits : 0)
    }

    package var total: Int { Trace.Verdict.allCases.reduce(0) { $0 + self[$1] } }

    /// Hits, stale, revalidated and collapsed ones among the reads the cache was asked for; 0 before the first.
    package var hitRatio: Double {
        let served = self[.hit] + self[.stale] + self[.revalidated] + self[.collapsed]
        let asked = served + self[.miss]
        return asked == 0 ? 0 : Double(served) / Double(asked)
    }
}
