// What a person may do with an operation from each state, and the words when not (outbox.md §1.3, P13; contract §4, §5).

/// A person's command on one operation.
package enum OperationSteering: String, CaseIterable, Sendable, Codable {
    /// Try again now.
    case retry
    /// Take it back before it was sent.
    case cancel
    /// Give up one that waits for a decision.
    case discard
    /// Replace it by an edited one, which takes its place in the lane.
    case edit

    /// What becomes of the command.
    package enum Verdict: Hashable, Sendable {
        /// `warning` says what cannot be promised, e.g. that an earlier attempt took no effect.
        case allowed(state: OperationState, reason: OperationReason?, warning: String?)
        /// In words for the `detail` of a 409.
        case refused(String)
    }

    /// The states it is allowed from: the `from` of the store's transition.
    package var allowedFrom: Set<OperationState> {
        switch self {
        case .retry: [.pending, .uncertain, .conflicted, .parked, .dead]
        case .cancel: [.pending, .parked]
        case .discard: [.pending, .uncertain, .conflicted, .parked, .dead]
        case .edit: [.pending, .conflicted, .parked, .dead]
        }
    }

    /// Whether `operation` may be steered so, and where it goes.
    /// - Parameter isInDoubt: whether an earlier attempt was sent and nobody knows what came of it.
    package func verdict(on operation: Operation, isInDoubt: Bool = false) -> Verdict {
        guard allowedFrom.contains(operation.state) else { return .refused(whyNot(operation.state)) }
        let warning = isInDoubt || wasSent(operation) ? "it was sent before; the upstream may have applied it" : nil
        switch self {
        case .retry: return .allowed(state: .pending, reason: nil, warning: retryWarning(operation))
        case .cancel: return .allowed(state: .cancelled, reason: .cancelled, warning: warning)
        case .discard: return .allowed(state: .cancelled, reason: .discarded, warning: warning)
        case .edit where isInDoubt && operation.state == .pending && !operation.request.method.isIdempotent:
            // Another payload goes under another key, which the first one's effect would not stop (outbox.md §1.7).
            return .refused("an earlier attempt may have taken effect; edit it when its next one has told, or cancel it")
        case .edit: return .allowed(state: .superseded, reason: .edited, warning: warning)
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

    private func retryWarning(_ operation: Operation) -> String? {
        operation.state == .uncertain && !operation.request.method.isIdempotent
            ? "its last attempt may have taken effect; sending it again may do so twice" : nil
    }

    /// Refusals are answers that say nothing was done; any other earlier attempt may have taken effect (P13).
    private func wasSent(_ operation: Operation) -> Bool {
        let waits = [OperationState.pending, .uncertain, .parked].contains(operation.state)
        return operation.lostAt != nil || waits && operation.firstSentAt != nil
    }
}
