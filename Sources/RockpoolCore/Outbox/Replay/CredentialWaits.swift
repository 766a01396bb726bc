// Operations that wait for a credential of their principal (docs/outbox.md#credentials).

/// The parked operations of each principal, and the number of credentials that it has shown.
struct CredentialWaits: Sendable {
    private(set) var parked: [String: Set<Int64>] = [:]
    private var credentials: [String: Int] = [:]

    /// Removes all operations; the counts of credentials stay.
    mutating func forgetOperations() { parked = [:] }

    /// Records whether the operation waits now.
    mutating func note(_ summary: OperationSummary) {
        guard let principal = summary.principal else { return }
        if isParked(summary) {
            parked[principal, default: []].insert(summary.sequence)
        } else {
            parked[principal]?.remove(summary.sequence)
        }
    }

    /// Forgets the number of an operation that gets another one.
    mutating func forget(_ summary: OperationSummary) {
        if let principal = summary.principal { parked[principal]?.remove(summary.sequence) }
    }

    /// Returns the number of credentials that the principal has shown.
    func shown(by principal: String?) -> Int { principal.flatMap { credentials[$0] } ?? 0 }

    /// Counts a live credential of the principal.
    /// - Returns: the operations that wait for one.
    mutating func show(by principal: String) -> Set<Int64> {
        credentials[principal, default: 0] += 1
        return parked[principal] ?? []
    }

    func isParked(_ summary: OperationSummary) -> Bool { summary.state == .parked && summary.reason == .auth }

    /// True if it is parked and its principal has shown a credential since its last attempt, or if it is anonymous and its parking time is
    /// over.
    func isAwake(_ entry: ReplayMachine.Entry, now: Timestamp) -> Bool {
        guard entry.summary.principal != nil else { return isParked(entry.summary) && entry.summary.nextAttemptAt <= now }
        // Parked by a proxy, it has a time of its own; otherwise the time is that of parking.
        return isParked(entry.summary) && entry.summary.nextAttemptAt <= now && entry.credentials < shown(by: entry.summary.principal)
    }
}
