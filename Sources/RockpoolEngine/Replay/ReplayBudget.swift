// Queued writes within the budget of their upstream (docs/caching.md#budgets).
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// Counts queued writes before they are leased.
struct ReplayBudget {
    private let data: DataStore
    private let routes: RouteTable
    private let budgets: RequestBudgets
    private let credentials: Credentials
    private let notifier: OutboxNotifier
    private let now: @Sendable () -> Timestamp

    init(of replayer: Replayer) {
        (data, routes, budgets) = (replayer.data, replayer.active.routes, replayer.upstreams.budgets)
        (credentials, notifier, now) = (replayer.credentials, replayer.notifier, replayer.now)
    }

    /// Counts a write; nil if it may be sent. Else pauses the upstream, or the write's client, and returns the event.
    /// - Throws: `DataStoreError`.
    func hold(_ id: String) async throws -> ReplayMachine.Event? {
        guard routes.upstreams.contains(where: { $0.rateLimit != nil }), let operation = try await data.operation(id: id),
            operation.state == .pending, let upstream = routes.upstream(named: operation.upstream),
            let hold = budgets.take(
                with: operation.principal.flatMap { credentials.live(of: $0) } ?? [:], at: upstream, now: now())
        else { return nil }
        notifier.inbox.put(
            hold.holdsAll
                ? .paused(upstream: upstream.name, until: hold.until) : .throttled(id: id, until: hold.until))
        return .failed(id: id)
    }
}
