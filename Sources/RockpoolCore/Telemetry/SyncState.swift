// The state of the whole server, worst first (docs/reference/admin-api.md#status).

/// The state of the whole server, worst first (docs/reference/admin-api.md#status).
package enum SyncState: String, CaseIterable {
    case offline, error, pending, syncing, synced

    /// The states of operations that are not finished and still need a step.
    package static let waiting: [OperationState] = [.pending, .inflight, .uncertain, .conflicted, .parked]

    package static func of(_ counts: [OperationState: Int], isAway: Bool, hasFault: Bool) -> SyncState {
        if isAway { return .offline }
        if counts[.dead, default: 0] > 0 || hasFault { return .error }
        if [.conflicted, .parked, .uncertain, .pending].contains(where: { counts[$0, default: 0] > 0 }) { return .pending }
        return counts[.inflight, default: 0] > 0 ? .syncing : .synced
    }
}
