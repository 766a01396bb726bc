// Which operation holds another back, and which of two ready ones goes first (outbox.md §1.8, §2.6).

/// The order of replay. Of one principal the first operation of a lane that has not ended holds all behind it, whatever its state. Among
/// principals only what can be sent holds others: what is dead, conflicted, parked or waits for a person in doubt lets them pass. Whoever
/// has proved no identity holds back nobody who has.
package enum ReplayOrder {
    /// How long an operation waits to gain one step of priority, so that low ones are sent in the end.
    package static let ageingStep = TimeSpan.seconds(3)

    /// Where an operation stands among the ready ones, lowest first. Waiting raises all alike, so the order of two never changes
    /// and this needs no clock: a step of priority is worth one of ageing.
    static func rank(_ operation: OperationSummary) -> Int64 {
        operation.acceptedAt.milliseconds.addedClamped(Int64(operation.priority) * ageingStep.milliseconds)
    }

    /// The operation that holds `operation` back; nil when it may go. By the letter and slowly: `ReplayMachine` keeps the same order.
    /// - Parameters:
    ///   - isStuck: Whether an operation waits for a person or a credential (`OperationMachine.isStuck`).
    ///   - isProved: Whether a principal has proved itself.
    package static func blocker(
        of operation: OperationSummary, among open: [OperationSummary], isStuck: (OperationSummary) -> Bool = { $0.state.isStuck },
        isProved: (String?) -> Bool = { _ in false }
    ) -> OperationSummary? {
        let open = open.filter { !$0.state.hasEnded }
        return open.filter { other in
            if other.id == operation.id { return false }
            if operation.needs.contains(other.sequence) { return true }
            guard LaneID(other) == LaneID(operation), other.place < operation.place else { return false }
            if other.principal == operation.principal { return true }
            return (isProved(other.principal) || !isProved(operation.principal)) && isFirst(other, open) && isMoving(other, open, isStuck)
        }.min { $0.sequence < $1.sequence }
    }

    private static func isFirst(_ operation: OperationSummary, _ open: [OperationSummary]) -> Bool {
        first(of: operation, open)?.sequence == operation.sequence
    }

    /// The first of the same lane and principal.
    private static func first(of operation: OperationSummary, _ open: [OperationSummary]) -> OperationSummary? {
        open.filter { LaneID($0) == LaneID(operation) && $0.principal == operation.principal }.min { $0.place < $1.place }
    }

    private static func isMoving(
        _ operation: OperationSummary, _ open: [OperationSummary], _ isStuck: (OperationSummary) -> Bool
    ) -> Bool {
        if isStuck(operation) { return false }
        guard operation.state == .pending else { return true }
        return open.filter { operation.needs.contains($0.sequence) }.allSatisfy { needed in
            !isStuck(needed) && !(first(of: needed, open).map(isStuck) ?? false)
        }
    }
}

extension OperationState {
    /// Waits for a person or a credential.
    package var isStuck: Bool { self == .parked || self == .conflicted || self == .dead }
}
