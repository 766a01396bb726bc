// The bytes of each upstream on the wire, and those that the cache has saved (docs/reference/admin-api.md#status).
package import RockpoolCore
import RockpoolStore
import Synchronization

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
