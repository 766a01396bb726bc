// Asks NetworkManager whether the connection is metered, while a configuration leaves that to it (docs/caching.md#budgets).
import RockpoolCore
import ServiceLifecycle

/// Keeps `RequestBudgets` informed.
package final class MeteredWatch: Service {
    private static let period = Duration.seconds(30)

    private let budgets: RequestBudgets
    private let active: ActiveConfiguration
    /// Returns NetworkManager's answer; nil without one.
    private let ask: @Sendable () async -> Bool?

    package init(budgets: RequestBudgets, active: ActiveConfiguration, ask: @escaping @Sendable () async -> Bool?) {
        (self.budgets, self.active, self.ask) = (budgets, active, ask)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                if self.active.configuration.upstreams.contains(where: { $0.metered == .auto }) {
                    self.budgets.setMetered(await self.ask() ?? false)
                }
                try? await Task.sleep(for: Self.period)
            }
        }
    }
}
