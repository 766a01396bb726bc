// Refresh tokens, in memory only, and the running refreshes: at most one per identity (docs/outbox.md#credentials).
import HTTPTypes
import OrderedCollections
import RockpoolCore
import Synchronization

/// Holds a refresh machine, a refresh token and a running task for each principal.
final class Renewals: Sendable {
    private static let limit = 1000

    private struct Renewal {
        var machine = RefreshMachine()
        var token: String?
        var task: Task<HTTPFields?, Never>?
    }

    private let state = Mutex<OrderedDictionary<String, Renewal>>([:])

    /// Records a refresh token that a client has received.
    func learn(_ token: String, of principal: String) {
        update(principal) {
            if $0.token != token { $0.machine.learnt() }
            $0.token = token
        }
    }

    /// Records that the upstream has accepted a credential of this principal.
    func accepted(_ principal: String) { state.withLock { $0[principal]?.machine.accepted() } }

    /// Drops the refresh token of a principal.
    func forget(_ principal: String) { state.withLock { $0[principal] = nil } }

    func token(of principal: String) -> String? { state.withLock { $0[principal]?.token } }

    /// True if a refresh would be attempted now.
    func mayRefresh(_ principal: String, hasFile: Bool, now: Timestamp) -> Bool {
        state.withLock { state in
            let renewal = state[principal] ?? Renewal()
            return renewal.machine.obstacle(hasToken: hasFile || renewal.token != nil, now: now) == nil
        }
    }

    /// Returns the action for a caller that needs a credential, and the task to wait for, if any.
    func needed(
        _ principal: String, isLive: Bool?, hasFile: Bool, now: Timestamp, refresh: @escaping @Sendable () async -> HTTPFields?
    ) -> (action: RefreshMachine.Action, task: Task<HTTPFields?, Never>?) {
        update(principal) { renewal in
            let action = renewal.machine.needed(isLive: isLive, hasToken: hasFile || renewal.token != nil, now: now)
            if action == .refresh { renewal.task = Task { await refresh() } }
            return (action, renewal.task)
        }
    }

    func ended(_ principal: String, ending: RefreshMachine.Ending, now: Timestamp) {
        update(principal) {
            $0.machine.ended(ending, now: now)
            $0.task = nil
        }
    }

    /// At the limit, an entry without a running refresh is removed first.
    private func update<Result>(_ principal: String, _ change: (inout Renewal) -> Result) -> Result {
        state.withLock { state in
            if state[principal] == nil, state.count >= Self.limit, let idle = state.values.firstIndex(where: { $0.task == nil }) {
                state.remove(at: idle)
            }
            return change(&state[principal, default: Renewal()])
        }
    }
}
