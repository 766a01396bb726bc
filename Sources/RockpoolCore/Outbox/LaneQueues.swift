// Who comes first in a lane, for each principal and among them (outbox.md §1.8).
import HeapModule

/// The order of one lane. Tickets may be out of date: each is checked when it comes up.
///
/// A principal's own operations keep their order, whatever becomes of them. Among principals those keep it that can be sent: what is
/// parked, dead or in conflict holds back nobody else. Nobody who has proved no identity holds back one that has.
struct LaneQueues: Sendable {
    /// Each principal's open operations by place; the empty name is nobody's.
    var own: [String: Heap<ReplayMachine.Ticket>] = [:]
    /// The first operations of proved principals, where they can be sent.
    var proved = Heap<ReplayMachine.Ticket>()
    /// Those of everybody else.
    var unproved = Heap<ReplayMachine.Ticket>()

    var isEmpty: Bool { own.isEmpty }
}
