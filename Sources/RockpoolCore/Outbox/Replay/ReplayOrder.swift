// The blocking relation between operations, and the order of ready ones (docs/outbox.md#principals).

/// The order of replay. Within one principal, the first operation of a lane that has not ended blocks all behind it, in any state. Among
/// principals, only an operation that can be sent blocks others: a dead, conflicted, parked or undecided uncertain one does not. An
/// unproved principal does not block a proved one.
package enum ReplayOrder {
    /// The waiting time that equals one step of priority, so that low priorities are sent eventually.
    package static let ageingStep = TimeSpan.seconds(3)

    /// Returns the order among ready operations, lowest first. Waiting raises all operations equally, so the relative order never changes
    /// and needs no clock: one step of priority equals one `ageingStep`.
    static func rank(_ operation: OperationSummary) -> Int64 {
        operation.acceptedAt.milliseconds.addedClamped(Int64(operation.priority) * ageingStep.milliseconds)
    }

    /// Returns the operation that blocks `operation`; nil when it may be sent. A slow reference implementation: `ReplayMachine` keeps the
    /// same order.
    /// - Parameters:
    ///   - isStuck: True if an operation waits for a person or a credential (`OperationMachine.isStuck`).
    ///   - isProved: True if an upstream has accepted the principal's credential.
    package static func blocker(
        of operation: OperationSummary, among open: [OperationSummary], isStuck: (OperationSummary) -> Bool = { $0.state.isStuck },
        isProved: (String?) -> Bool = { _ in false }
    ) -> OperationSummary? {
        let open = open.filter { !$0.state.hasEnded }
        return open.filter { other in
            if other.id == operation.id { return false }
            if operation.needs.contains(other.sequence) { return true }
            guard other.lane == operation.lane, other.place < operation.place else { return false }
            if other.principal == operation.principal { return true }
            return (isProved(other.principal) || !isProved(operation.principal)) && isFirst(other, among: open)
                && isMoving(other, among: open, isStuck: isStuck)
        }.min { $0.sequence < $1.sequence }
    }

    private static func isFirst(_ operation: OperationSummary, among open: [OperationSummary]) -> Bool {
        first(of: operation, among: open)?.sequence == operation.sequence
    }

    /// Returns the first operation of the same lane and principal.
    private static func first(of operation: OperationSummary, among open: [OperationSummary]) -> OperationSummary? {
        open.filter { $0.lane == operation.lane && $0.principal == operation.principal }.min { $0.place < $1.place }
    }

    private static func isMoving(
        _ operation: OperationSummary, among open: [OperationSummary], isStuck: (OperationSummary) -> Bool
    ) -> Bool {
        if isStuck(operation) { return false }
        guard operation.state == .pending else { return true }
        return open.filter { operation.needs.contains($0.sequence) }.allSatisfy { needed in
            !isStuck(needed) && !(first(of: needed, among: open).map(isStuck) ?? false)
        }
    }
}

extension OperationState {
    /// True if it waits for a person or a credential.
    package var isStuck: Bool { self == .parked || self == .conflicted || self == .dead }
}
