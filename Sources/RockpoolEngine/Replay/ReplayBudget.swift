// Queued writes within the budget of their upstream (docs/caching.md#budgets).
import RockpoolCore
import RockpoolStore

/// Counts queued writes before they are leased.
struct ReplayBudget {
    private let data: DataStore
    private let routes: RouteTable
    private let budgets: RequestBudgets
    private let notifier: OutboxNotifier
    private let now: @Sendable () -> Timestamp

    init(of replayer: Replayer) {
        (data, routes, budgets) = (replayer.data, replayer.active.routes, replayer.upstreams.budgets)
        (notifier, now) = (replayer.notifier, replayer.now)
    }

    /// Counts a write; nil if it may be sent. Where the budget is spent, pauses the upstream, and returns the event.
    /// - Throws: `DataStoreError`.
    func hold(_ id: String) async throws -> ReplayMachine.Event? {
        guard routes.upstreams.contains(where: { $0.rateLimit != nil }), let operation = try await data.operation(id: id),
            operation.state == .pending, let upstream = routes.upstream(named: operation.upstream),
            let until = budgets.take(for: .replay, at: upstream, now: now())
        else { return nil }
        notifier.inbox.put(.paused(upstream: upstream.name, until: until))
        return .failed(sequence: operation.sequence)
    }
}
