// What a lane contains: mostly one operation (docs/outbox.md#lanes).
import HeapModule

/// The operations of one lane.
enum LaneContent: Sendable {
    /// A single operation, by its sequence, as in the lane of each create: its entry says the rest.
    case one(Int64)
    case several(Boxed<LaneQueues>)

    /// Changes the queues in place; no effect on a single operation.
    mutating func changeQueues(_ change: (inout LaneQueues) -> Void) {
        guard case .several(var queues) = self else { return }
        // Otherwise two references to the queues would make each change copy them.
        self = .one(0)
        change(&queues.value)
        self = .several(queues)
    }

    /// The queues; nil for a single operation.
    var queues: LaneQueues? { if case .several(let queues) = self { queues.value } else { nil } }
}
