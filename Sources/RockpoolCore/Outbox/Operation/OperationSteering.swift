// The commands of a person on an operation by state, and the reasons for refusing them (docs/outbox.md#steering, P13;
// docs/reference/admin-api.md#steering).

/// A person's command on one operation.
package enum OperationSteering: String, CaseIterable, Sendable, Codable {
    /// Try again now.
    case retry
    /// Cancel it before it is sent.
    case cancel
    /// Give up an operation that waits for a decision.
    case discard
    /// Replace it by an edited one, which takes its place in the lane.
    case edit

    /// The verdict on a command.
    package enum Verdict: Hashable, Sendable {
        /// `warning` describes a remaining risk, e.g. that an earlier attempt may have taken effect.
        case allowed(state: OperationState, reason: OperationReason?, warning: String?)
        /// The `detail` of a 409.
        case refused(String)
    }

    /// The states in which the command is allowed: the `from` of the store's transition.
    package var allowedFrom: Set<OperationState> {
        switch self {
        case .retry: [.pending, .uncertain, .conflicted, .parked, .dead]
        case .cancel: [.pending, .parked]
        case .discard: [.pending, .uncertain, .conflicted, .parked, .dead]
        case .edit: [.pending, .conflicted, .parked, .dead]
        }
    }

    /// Returns the commands that are allowed on `operation`. `lostAt` is the last attempt whose outcome is unknown.
    package static func allowed(on operation: QueuedWrite) -> [OperationSteering] {
        allCases.filter { command in
            if case .allowed = command.verdict(on: operation, isInDoubt: operation.lostAt != nil) { true } else { false }
        }
    }

    /// Returns whether the command is allowed on `operation`, and the next state.
    /// - Parameter isInDoubt: true if an earlier attempt was sent and its outcome is unknown.
    package func verdict(on operation: QueuedWrite, isInDoubt: Bool = false) -> Verdict {
        guard allowedFrom.contains(operation.state) else { return .refused(whyNot(operation.state)) }
        let warning = isInDoubt || wasSent(operation) ? "it was sent before; the upstream may have applied it" : nil
        switch self {
        case .retry: return .allowed(state: .pending, reason: nil, warning: retryWarning(for: operation))
        case .cancel: return .allowed(state: .cancelled, reason: .cancelled, warning: warning)
        case .discard: return .allowed(state: .cancelled, reason: .discarded, warning: warning)
        case .edit where isInDoubt && operation.state == .pending && !operation.request.method.isIdempotent:
            // A different payload is sent with a different key, which would not suppress the first one's effect (docs/outbox.md#keys).
            return .refused("an earlier attempt may have taken effect; edit it when its next one has told, or cancel it")
        case .edit: return .allowed(state: .superseded, reason: .edited, warning: warning)
        }
    }

    /// True if a retried operation gets a new key: the upstream has refused it, and servers store refusals under the key (docs/outbox.md#keys).
    /// One that was given up after server errors may have taken effect under its key, and keeps it.
    package static func renewsKey(of operation: QueuedWrite) -> Bool {
        switch (operation.state, operation.reason) {
        case (.dead, .rejected), (.dead, .tooOld), (.uncertain, .rejected): true
        case (.conflicted, _): operation.lostAt == nil
        default: false
        }
    }

    private func whyNot(_ state: OperationState) -> String {
        switch state {
        case .inflight: "it is being sent at this moment; try again when its attempt has ended"
        case .delivered: "it has been delivered"
        case .cancelled: "it has been cancelled"
        case .superseded: "a later operation has taken its place"
        case .uncertain where self == .edit: "its last attempt may have taken effect; retry or discard it"
        case .uncertain: "its last attempt may have taken effect; discard it instead"
        case .conflicted, .dead: "the upstream has refused it; discard it instead"
        case .pending, .parked: "it is still waiting"
        }
    }

    private func retryWarning(for operation: QueuedWrite) -> String? {
        operation.state == .uncertain && !operation.request.method.isIdempotent
            ? "its last attempt may have taken effect; sending it again may do so twice" : nil
    }

    /// A refusal proves that nothing was applied; any other earlier attempt may have taken effect (P13).
    private func wasSent(_ operation: QueuedWrite) -> Bool {
        let waits = [OperationState.pending, .uncertain, .parked].contains(operation.state)
        return operation.lostAt != nil || waits && operation.firstSentAt != nil
    }
}
