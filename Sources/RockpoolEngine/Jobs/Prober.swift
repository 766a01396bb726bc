// Probes the reachability of upstreams: by the configured probe, else by a HEAD of the root while an operation waits or a client's request
// failed lately (docs/reference/behaviour.md#reachability).
import RockpoolCore
import ServiceLifecycle
import Synchronization

/// Probes upstreams when their reachability machine has a probe due. A probe is always safe, never a client's write.
package final class Prober: Service {
    private static let tick = Duration.milliseconds(200)

    private let upstreams: UpstreamClient
    private let reachability: ReachabilityTable
    private let active: ActiveConfiguration
    private let somethingWaits: @Sendable (_ upstream: String) -> Bool
    private let now: @Sendable () -> Timestamp
    private let underWay = Mutex<Set<String>>([])

    init(
        upstreams: UpstreamClient, reachability: ReachabilityTable, active: ActiveConfiguration,
        now: @escaping @Sendable () -> Timestamp,
        somethingWaits: @escaping @Sendable (_ upstream: String) -> Bool
    ) {
        self.upstreams = upstreams
        self.reachability = reachability
        self.active = active
        self.somethingWaits = somethingWaits
        self.now = now
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                while !Task.isCancelled {
                    // Probe each upstream in its own task, so that a silent one does not delay the others.
                    for upstream in self.due() { group.addTask { await self.probe(upstream) } }
                    for node in self.upstreams.parents.takeDue() { group.addTask { await self.upstreams.probe(parent: node) } }
                    for url in self.upstreams.proxies.takeDue() { group.addTask { await self.upstreams.probe(proxy: url) } }
                    try? await Task.sleep(for: Self.tick)
                }
            }
        }
    }

    /// Sends every due probe and waits for the results. Returns the names of the probed upstreams.
    @discardableResult
    package func runOnce() async -> [String] {
        let due = due()
        await withDiscardingTaskGroup { group in
            for upstream in due { group.addTask { await self.probe(upstream) } }
        }
        return due.map(\.name)
    }

    private func due() -> [Upstream] {
        let now = self.now()
        return self.active.routes.upstreams.filter { upstream in
            let somethingWaits = self.somethingWaits(upstream.name) || self.reachability.wasWantedLately(upstream.name, now: now)
            guard self.reachability.machine(of: upstream.name)?.probeDue(now: now, somethingWaits: somethingWaits) == true else {
                return false
            }
            return underWay.withLock { $0.insert(upstream.name).inserted }
        }
    }

    private func probe(_ upstream: Upstream) async {
        defer { underWay.withLock { _ = $0.remove(upstream.name) } }
        await self.upstreams.probe(upstream)
    }
}
