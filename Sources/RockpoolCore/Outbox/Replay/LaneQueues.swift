// The order of a lane, within each principal and among principals (docs/outbox.md#principals).
import HeapModule

/// The order of one lane. Tickets may be out of date: each is checked when it is popped.
///
/// A principal's own operations keep their order in every state. Among principals, only operations that can be sent keep their order: a
/// parked, dead or conflicted one does not block other principals. An unproved principal does not block a proved one.
struct LaneQueues: Sendable {
    /// Each principal's open operations by place; the empty name is for operations without a principal.
    var own: [String: Heap<ReplayMachine.Ticket>] = [:]
    /// The first operations of proved principals, where they can be sent.
    var proved = Heap<ReplayMachine.Ticket>()
    /// The first operations of unproved principals, where they can be sent.
    var unproved = Heap<ReplayMachine.Ticket>()

    var isEmpty: Bool { own.isEmpty }

    /// Adds an operation to those of its principal.
    mutating func add(_ summary: OperationSummary) { own[summary.principal ?? "", default: []].insert(ReplayMachine.Ticket(summary)) }

    /// Adds a principal's first operation to those that can be sent.
    mutating func addFront(_ summary: OperationSummary, isProved: Bool) {
        if isProved { proved.insert(ReplayMachine.Ticket(summary)) } else { unproved.insert(ReplayMachine.Ticket(summary)) }
    }
}

extension ReplayMachine.Ticket {
    /// The place of an operation in its lane.
    fileprivate init(_ summary: OperationSummary) { self.init(key: summary.place, sequence: summary.sequence) }
}
