// The open operations in their lanes, and the end of each lane's wait (docs/outbox.md#lanes, docs/outbox.md#lane-holds).
import HeapModule

/// The open operations, and their order in each lane: which of them block others, and which may be sent.
struct LaneTable: Sendable {
    /// By name of the upstream; operations of other upstreams wait.
    var contexts: [String: ReplayContext]
    var entries = SequenceTable<ReplayMachine.Entry>()
    var contents: [LaneID: LaneContent] = [:]
    /// The texts that operations have in common.
    var texts = SharedTexts()
    /// Principals with a credential that an upstream has accepted.
    private var proved: Set<String> = []
    /// The operations that wait for the end of the key's operation.
    private var dependants: [Int64: Set<Int64>] = [:]
    /// The operations whose standing in their line has changed, so that others may be released or held back.
    var restated: Set<Int64> = []
    /// The end of each lane's wait for an earlier attempt that may still run (docs/outbox.md#lane-holds, the zombie attempt).
    var holds: [LaneID: LaneHold] = [:]
    /// By upstream: what it has told single clients.
    var pauses: [String: ClientPauses] = [:]

    init(contexts: [String: ReplayContext]) { self.contexts = contexts }

    /// Removes all operations; proofs and holds stay.
    mutating func forgetOperations() {
        (entries, contents, dependants, texts, restated) = (SequenceTable(), [:], [:], SharedTexts(), [])
    }

    // MARK: - Operations

    /// Adds the ticket and the dependencies of an operation whose entry was replaced.
    /// - Parameter before: the replaced state; nil for a new operation.
    mutating func enter(_ summary: OperationSummary, after before: OperationSummary?, now: Timestamp) {
        if summary.state == .inflight { depart(summary) }
        if entries[summary.sequence]?.isLined != true, reach(of: summary, now: now).own != .nothing { line(up: summary, now: now) }
        if before?.needs != summary.needs {
            for need in summary.needs { dependants[need, default: []].insert(summary.sequence) }
        }
    }

    /// Adds the ticket of an operation to its lane.
    private mutating func line(up summary: OperationSummary, now: Timestamp) {
        entries[summary.sequence]?.isLined = true
        switch contents[summary.lane] {
        case .several: contents[summary.lane]?.changeQueues { $0.add(summary) }
        case .one(let sequence) where sequence != summary.sequence:
            guard let first = entries[sequence], first.summary.lane == summary.lane, first.isLined else { fallthrough }
            var queues = LaneQueues()
            queues.add(first.summary)
            if first.isFront { queues.addFront(first.summary, isProved: isProved(first.summary.principal)) }
            queues.add(summary)
            if isRunning(sequence, in: summary.lane) { queues.running.insert(sequence) }
            contents[summary.lane] = .several(Boxed(queues))
            entries[sequence]?.isAside = false
            sort(LaneClient(first.summary), before: first.isAside ? [sequence] : [], now: now)
        case .one, nil: contents[summary.lane] = .one(summary.sequence)
        }
    }

    /// Removes the entry of an operation that has ended, and its dependencies.
    mutating func remove(_ sequence: Int64, needs: some Sequence<Int64>) {
        entries[sequence] = nil
        for need in needs {
            dependants[need]?.remove(sequence)
            if dependants[need]?.isEmpty == true { dependants[need] = nil }
        }
    }

    /// Gives an operation another number, for itself and for those that need it.
    mutating func renumber(_ old: Int64, to new: Int64) {
        guard var entry = entries[old] else { return }
        remove(old, needs: entry.summary.needs)
        for need in entry.summary.needs { dependants[need, default: []].insert(new) }
        entry.renumber(to: new)
        entries[new] = entry
        guard let waiting = dependants.removeValue(forKey: old) else { return }
        for sequence in waiting {
            if entries[sequence]?.summary.needs.remove(old) != nil { entries[sequence]?.summary.needs.insert(new) }
            if entries[sequence]?.summary.follows.remove(old) != nil { entries[sequence]?.summary.follows.insert(new) }
        }
        dependants[new, default: []].formUnion(waiting)
    }

    /// Returns and removes the operations that waited for the end of this one.
    mutating func takeDependants(of sequence: Int64) -> Set<Int64> { dependants.removeValue(forKey: sequence) ?? [] }

    /// Returns the operations that wait for the end of one of these.
    func dependants(of sequences: some Sequence<Int64>) -> Set<Int64> {
        sequences.reduce(into: []) { all, sequence in all.formUnion(dependants[sequence] ?? []) }
    }

    /// Returns the dependants of all operations of this client in this lane: one that waits for a person may hold back them all.
    func dependants(beside summary: OperationSummary) -> Set<Int64> {
        let beside: [Int64] =
            switch contents[summary.lane] {
            case .one(let sequence): [sequence]
            case .several(let queues): queues.value.own[summary.client]?.sequences ?? []
            case nil: []
            }
        return dependants(of: beside + [summary.sequence])
    }

    // MARK: - Principals and holds

    /// Records that the principal is proved: from now on no unproved principal blocks it.
    /// - Returns: its places in the lanes; empty if it was proved already.
    mutating func prove(_ principal: String) -> Set<LaneClient> {
        guard proved.insert(principal).inserted else { return [] }
        return entries.all.filter { $0.value.summary.principal == principal }.reduce(into: []) { places, found in
            // Its ticket is in the unproved queue.
            entries[found.sequence]?.isFront = false
            places.insert(LaneClient(found.value.summary))
        }
    }

    func isProved(_ principal: String?) -> Bool { principal.map(proved.contains) ?? false }

    /// Makes the lane wait for an attempt of this principal.
    mutating func hold(_ lane: LaneID, of principal: String?, until moment: Timestamp, now: Timestamp) {
        guard moment > now else { return }
        holds[lane, default: LaneHold()].extend(until: moment, byProved: isProved(principal))
    }

    /// Removes the hold of a lane when it has ended for everybody.
    mutating func expireHold(of lane: LaneID, now: Timestamp) {
        if let hold = holds[lane], hold.moment(forProved: false) <= now { holds[lane] = nil }
    }

    /// Shifts all waits after the wall clock was set back.
    mutating func setBack(by span: TimeSpan) {
        for (sequence, _) in entries.all { entries[sequence]?.setBack(by: span) }
        holds = holds.mapValues { $0.setBack(by: span) }
        for upstream in pauses.keys { pauses[upstream]?.setBack(by: span) }
    }
}

// MARK: - The operations of a lane

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

/// The order of one lane. Tickets may be out of date: each is checked when it is popped (docs/outbox.md#lanes, docs/outbox.md#principals).
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

// MARK: - Holds

/// What holds one lane (docs/outbox.md#wire-rule, the zombie attempt).
package struct LaneHold: Hashable, Sendable {
    /// An attempt of a proved principal: everybody waits.
    private var forAll: Timestamp?
    /// An attempt of anybody else: nobody waits who is proved.
    private var forUnproved: Timestamp?

    /// Holds nothing yet.
    package init() {}

    /// Never holds for less than before, since each of the attempts may still run.
    package mutating func extend(until moment: Timestamp, byProved isProved: Bool) {
        if isProved {
            forAll = max(moment, forAll ?? moment)
        } else {
            forUnproved = max(moment, forUnproved ?? moment)
        }
    }

    /// Until when a principal waits; long past where nothing holds it.
    package func moment(forProved isProved: Bool) -> Timestamp {
        max(forAll ?? .distantPast, isProved ? .distantPast : forUnproved ?? .distantPast)
    }

    /// The same under a clock that was set back.
    func setBack(by span: TimeSpan) -> LaneHold {
        var hold = self
        (hold.forAll, hold.forUnproved) = (forAll.map { $0 - span }, forUnproved.map { $0 - span })
        return hold
    }
}
