// The states of an operation (docs/outbox.md#states).

/// The state of an operation. The raw values are a CHECK of the `op` table.
package enum OperationState: String, CaseIterable, Sendable, Codable {
    case pending, inflight, uncertain, delivered, conflicted, parked, dead, cancelled, superseded

    /// True if nothing can change the operation any more, so that the lane may continue.
    package var hasEnded: Bool {
        switch self {
        case .delivered, .cancelled, .superseded: true
        case .pending, .inflight, .uncertain, .conflicted, .parked, .dead: false
        }
    }
}
