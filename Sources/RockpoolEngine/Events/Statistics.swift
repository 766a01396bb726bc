// Counters since the start of the server, updated from traces; only hot hits are counted directly
// (docs/reference/admin-api.md#status `/v1/stats`).
package import RockpoolCore
import Synchronization

/// Counts exchanges by verdict, and the latencies of their response heads.
package final class Statistics: Sendable {
    private struct State {
        var counts: [Trace.Verdict: Int] = [:]
        var latencies: [Trace.Verdict: LatencyHistogram] = [:]
        var bytes: [Trace.Verdict: Int64] = [:]
        var offlineReads = 0
        var offlineMisses = 0
    }

    private let state = Mutex(State())
    /// Hits and stale responses served before an exchange was created; atomic numbers, so that they take no lock.
    private let hot = Atomic<Int>(0)
    private let hotStale = Atomic<Int>(0)
    private let relayed = Atomic<Int>(0)

    /// Bytes by upstream.
    package let traffic = Traffic()

    package init() {}

    /// Counts one exchange. `duration` is the time from the received request head until the response head was ready.
    package func count(_ trace: Trace, took duration: Duration = .zero) {
        let seconds = duration / .seconds(1)
        state.withLock {
            $0.counts[trace.verdict, default: 0] += 1
            $0.latencies[trace.verdict, default: LatencyHistogram()].record(seconds: seconds)
            guard let status = trace.cacheStatus, let detail = status.detail else { return }
            if status.hit, [Reuse.StaleReason.offline, .variant].contains(where: { $0.detail == detail }) { $0.offlineReads += 1 }
            if !status.hit, detail == "unreachable" { $0.offlineMisses += 1 }
        }
    }

    /// Reads whose upstream was away: answered from a copy that was not fresh, and those without a copy.
    package var offlineReads: (answered: Int, missed: Int) {
        let (answered, missed) = state.withLock { ($0.offlineReads, $0.offlineMisses) }
        return (answered + hotStale.load(ordering: .relaxed), missed)
    }

    /// Counts the body of a reply that was sent.
    func deliver(_ bytes: Int64, of trace: Trace) {
        guard bytes > 0 else { return }
        traffic.deliver(bytes, of: trace)
        state.withLock { $0.bytes[trace.verdict, default: 0] += bytes }
    }

    /// Bytes of the bodies that clients received with `verdict`.
    package func bytes(of verdict: Trace.Verdict) -> Int64 {
        let (all, stale) = traffic.hotBytes
        return state.withLock { $0.bytes[verdict, default: 0] } + (verdict == .hit ? all - stale : verdict == .stale ? stale : 0)
    }

    /// Counts the latency of a hot hit.
    /// - Parameter count: the number of hits that this one stands for.
    func measureHot(_ duration: Duration, isStale: Bool, count: Int) {
        let seconds = duration / .seconds(1)
        state.withLock { $0.latencies[isStale ? .stale : .hit, default: LatencyHistogram()].record(seconds: seconds, count: count) }
    }

    /// Latencies by verdict. Of many hot hits only a sample is measured, and stands for the others.
    package var latencies: [Trace.Verdict: LatencyHistogram] { state.withLock(\.latencies) }

    /// Hits served from hot replies; `hit` includes them.
    package var hotHits: Int { hot.load(ordering: .relaxed) }

    /// Responses that were passed on without the read pipeline; the counts by verdict include them.
    package var relays: Int { relayed.load(ordering: .relaxed) }

    /// Counts a response that was passed on without the read pipeline.
    func countRelay() { relayed.wrappingAdd(1, ordering: .relaxed) }

    /// Counts one hot hit, or one stale response that was sent the same way.
    package func countHot(isStale: Bool) {
        if isStale { hotStale.wrappingAdd(1, ordering: .relaxed) } else { hot.wrappingAdd(1, ordering: .relaxed) }
    }

    /// The number of exchanges that ended with `verdict` since the start.
    package subscript(verdict: Trace.Verdict) -> Int {
        state.withLock { $0.counts[verdict, default: 0] }
            + (verdict == .hit ? hotHits : verdict == .stale ? hotStale.load(ordering: .relaxed) : 0)
    }

    package var total: Int { Trace.Verdict.allCases.reduce(0) { $0 + self[$1] } }

    /// The proportion of hits, stale, revalidated and collapsed responses in all reads that used the cache; 0 before the first.
    package var hitRatio: Double {
        let served = self[.hit] + self[.stale] + self[.revalidated] + self[.collapsed]
        let asked = served + self[.miss]
        return asked == 0 ? 0 : Double(served) / Double(asked)
    }
}
