// Counters since the start of the server, updated from traces; only hot hits are counted directly
// (docs/reference/admin-api.md#status `/v1/stats`).
import HTTPTypes
package import RockpoolCore
import RockpoolStore
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

/// Counts bytes by upstream; undeclared hosts are counted together.
package final class Traffic: Sendable {
    private struct State {
        var counts: [String?: UpstreamTraffic] = [:]
        var hot: [String?: ServedBytes] = [:]
    }

    private let state = Mutex(State())
    /// The findings about compression.
    package let via = ViaHabits()

    package init() {}

    /// Counts a request that was sent to an upstream.
    func count(_ upstream: String?, sent: Int64, received: Int64, forClient: Bool) {
        state.withLock { $0.counts[upstream, default: UpstreamTraffic()].count(sent: sent, received: received, forClient: forClient) }
    }

    /// Counts the body of a reply.
    func deliver(_ bytes: Int64, of trace: Trace) {
        guard bytes > 0, case .routed(let upstream, _, _)? = trace.entries.first(where: \.step.isRouted)?.step else { return }
        let isSaved = [.hit, .stale, .revalidated, .collapsed].contains(trace.verdict)
        state.withLock { $0.counts[upstream, default: UpstreamTraffic()].deliver(bytes, isSaved: isSaved) }
    }

    /// The counter for hot replies of an upstream, which are sent without a lock.
    func hot(_ upstream: String?) -> ServedBytes {
        state.withLock { state in
            if let known = state.hot[upstream] { return known }
            let new = ServedBytes()
            state.hot[upstream] = new
            return new
        }
    }

    /// The bytes of all hot replies, and of the stale ones among them.
    var hotBytes: (all: Int64, stale: Int64) {
        state.withLock { state in (state.hot.values.reduce(0) { $0 + $1.count }, state.hot.values.reduce(0) { $0 + $1.staleCount }) }
    }

    /// The counts of an upstream; nil names the undeclared hosts.
    package subscript(upstream: String?) -> UpstreamTraffic {
        state.withLock { state in
            var traffic = state.counts[upstream] ?? UpstreamTraffic()
            traffic.deliver(state.hot[upstream]?.count ?? 0, isSaved: true)
            return traffic
        }
    }
}

extension Trace.Step {
    fileprivate var isRouted: Bool { if case .routed = self { true } else { false } }
}

/// Leaves `Via` out of requests to upstreams whose compression depends on it. `CDN-Loop` still tells loops
/// (docs/reference/behaviour.md#via).
package final class ViaHabits: Sendable {
    /// Maximum number of remembered origins.
    private static let limit = 1024

    private let habits = Mutex<[OriginAddress: ViaHabit]>([:])

    /// Removes Rockpool's member of `Via` where it should not be sent. Returns true if the request has it.
    /// - Parameter name: Rockpool's name in `Via`.
    func prepare(_ head: inout RequestHead, rule: SendVia, name: String, now: Timestamp) -> Bool {
        let members = head.fields[values: .via]
        guard let last = members.last, last.hasSuffix(" " + name) else { return false }
        let isWithheld =
            switch rule {
            case .always: false
            case .never: true
            case .auto: habits.withLock { $0[head.origin]?.withholds(at: now) } == true
            }
        guard isWithheld else { return true }
        head.fields[values: .via] = Array(members.dropLast())
        return false
    }

    /// Takes account of an answer.
    func learn(from answer: ResponseHead, length: Int64?, to head: RequestHead, hadVia: Bool, now: Timestamp) {
        habits.withLock { habits in
            if habits[head.origin] == nil, habits.count >= Self.limit { habits.removeAll() }
            habits[head.origin, default: ViaHabit()].learn(
                from: answer, length: length, to: head, hadVia: hadVia, now: now)
        }
    }

    /// True if the upstream was found to compress only without `Via`.
    package func isWithheld(from origin: OriginAddress) -> Bool { habits.withLock { $0[origin]?.isProved } == true }
}
