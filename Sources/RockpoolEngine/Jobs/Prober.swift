// Probes the reachability of upstreams: by the configured probe, else by a HEAD of the root while an operation waits or a client's request
// failed lately (docs/reference/behaviour.md#reachability).
import RockpoolCore
import ServiceLifecycle
import Synchronization

/// Probes upstreams when their reachability machine has a probe due. A probe is always safe, never a client's write.
package final class Prober: Service {
    private static let tick = Duration.milliseconds(200)

    private let engine: Engine
    private let replayer: Replayer
    private let underWay = Mutex<Set<String>>([])

    package init(engine: Engine, replayer: Replayer) {
        self.engine = engine
        self.replayer = replayer
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                while !Task.isCancelled {
                    // Probe each upstream in its own task, so that a silent one does not delay the others.
                    for upstream in self.due() { group.addTask { await self.probe(upstream) } }
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
        let now = engine.now()
        return engine.routes.upstreams.filter { upstream in
            let somethingWaits = replayer.somethingWaits(for: upstream.name) || engine.reachability.wasWantedLately(upstream.name, now: now)
            guard engine.reachability.machine(of: upstream.name)?.probeDue(now: now, somethingWaits: somethingWaits) == true else {
                return false
            }
            return underWay.withLock { $0.insert(upstream.name).inserted }
        }
    }

    private func probe(_ upstream: Upstream) async {
        defer { underWay.withLock { _ = $0.remove(upstream.name) } }
        await engine.probe(upstream)
    }
}
