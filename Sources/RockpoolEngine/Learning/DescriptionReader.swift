// Fetches the descriptions of APIs that the operator has named (docs/outbox.md#descriptions).
import RockpoolCore
import ServiceLifecycle
import Synchronization

/// Reads each description at the start, and again once its copy is stale.
package final class DescriptionReader: Service {
    private static let tick = Duration.seconds(1)
    /// The pause between two looks at a copy, which is only fetched again if it is stale, and between two tries to get one.
    private static let pause = TimeSpan.hours(1)
    private static let retry = TimeSpan.minutes(10)

    private let active: ActiveConfiguration
    private let reachability: ReachabilityTable
    private let learning: ResourceLearning
    private let now: @Sendable () -> Timestamp
    /// Reads a URL as a client does.
    private let read: @Sendable (_ url: String) async -> Void
    private let due = Mutex<[String: Timestamp]>([:])

    init(
        active: ActiveConfiguration, reachability: ReachabilityTable, learning: ResourceLearning, now: @escaping @Sendable () -> Timestamp,
        read: @escaping @Sendable (_ url: String) async -> Void
    ) {
        (self.active, self.reachability, self.learning, self.now, self.read) = (active, reachability, learning, now, read)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await self.readDue()
                try? await Task.sleep(for: Self.tick)
            }
        }
    }

    /// Reads the descriptions that are due.
    package func readDue() async {
        for upstream in active.configuration.upstreams where upstream.learnsResources && reachability.isUsable(upstream.name) {
            guard let url = upstream.learn.description.url(at: upstream.origin), isDue(url) else { continue }
            await read(url)
            let isKnown = await learning.readDescription(at: url, of: upstream.name, in: .shared)
            due.withLock { $0[url] = now() + (isKnown ? Self.pause : Self.retry) }
        }
    }

    private func isDue(_ url: String) -> Bool {
        let now = now()
        return due.withLock { $0[url].map { $0 <= now } ?? true }
    }
}
