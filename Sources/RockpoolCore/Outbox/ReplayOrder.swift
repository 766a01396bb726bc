// Which operation holds another back, and which of two ready ones goes first (outbox.md §1.8, §2.6).

/// The order of replay. A lane is held by its first operation that has not ended, whatever its state: one that is dead, conflicted,
/// parked or uncertain lets none of its lane jump over it, and holds no other lane.
package enum ReplayOrder {
    /// How long an operation waits to gain one step of priority, so that low ones are sent in the end.
    package static let ageingStep = TimeSpan.seconds(3)

    /// Where an operation stands among the ready ones, lowest first. Waiting raises all alike, so the order of two never changes
    /// and this needs no clock: a step of priority is worth one of ageing.
    static func rank(_ operation: OperationSummary) -> Int64 {
        operation.acceptedAt.milliseconds.addedClamped(Int64(operation.priority) * ageingStep.milliseconds)
    }

    /// The operation that holds `operation` back: the first open one of its lane, or one it needs; nil when it may go.
    package static func blocker(of operation: OperationSummary, among open: [OperationSummary]) -> OperationSummary? {
        open.filter { other in
            !other.state.hasEnded && other.id != operation.id
                && (operation.needs.contains(other.sequence) || LaneID(other) == LaneID(operation) && other.place < operation.place)
        }.min { $0.sequence < $1.sequence }
    }
}
