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
}
