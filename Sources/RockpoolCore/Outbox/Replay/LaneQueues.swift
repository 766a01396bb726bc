// The order of a lane, within each client and among clients (docs/outbox.md#lanes, docs/outbox.md#principals).
import HeapModule

/// The order of one lane. Tickets may be out of date: each is checked when it is popped.
struct LaneQueues: Sendable {
    /// Each client's open operations.
    var own: [String: ClientLine] = [:]
    /// What holds back other clients, of proved principals: their first operations, and writes whose effect is looked for.
    var proved = Heap<ReplayMachine.Ticket>()
    /// The same of unproved principals. They do not hold back proved ones.
    var unproved = Heap<ReplayMachine.Ticket>()
    /// Those that are being sent. One that is sent again by a person may have an earlier place, and does not go beside one of its client.
    var running: Set<Int64> = []

    var isEmpty: Bool { own.isEmpty }

    /// Adds an operation to those of its client.
    mutating func add(_ summary: OperationSummary) { own[summary.client, default: ClientLine()].line.insert(ReplayMachine.Ticket(summary)) }

    /// Adds an operation to those that other clients wait for.
    mutating func addFront(_ summary: OperationSummary, isProved: Bool) {
        if isProved { proved.insert(ReplayMachine.Ticket(summary)) } else { unproved.insert(ReplayMachine.Ticket(summary)) }
    }
}

/// The operations of one client in a lane that have not left its order.
struct ClientLine: Sendable {
    /// In the order of their places.
    var line = Heap<ReplayMachine.Ticket>()
    /// Those at the front that hold back their entity at most: the ones in conflict, the ones looked for, and the ones that wait for such
    /// operations.
    var aside: [ReplayMachine.Ticket] = []
    /// The first operation of `line` when it was determined last.
    var head: Int64?

    var isEmpty: Bool { line.isEmpty && aside.isEmpty }
    var sequences: [Int64] { line.unordered.map(\.sequence) + aside.map(\.sequence) }
}

/// One client in one lane.
struct LaneClient: Hashable, Sendable {
    var lane: LaneID
    var client: String

    init(_ summary: OperationSummary) { (lane, client) = (summary.lane, summary.client) }
}

extension ReplayMachine.Ticket {
    /// The place of an operation in its lane.
    fileprivate init(_ summary: OperationSummary) { self.init(key: summary.place, sequence: summary.sequence) }
}
