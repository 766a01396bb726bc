// The open operations in their lanes, and the end of each lane's wait (docs/outbox.md#lanes, docs/outbox.md#lane-holds).
import HeapModule

/// The open operations, and their order in each lane: which of them block others, and which may be sent.
struct LaneTable: Sendable {
    /// By name of the upstream; operations of other upstreams wait.
    var contexts: [String: ReplayContext]
    var entries: [Int64: ReplayMachine.Entry] = [:]
    var queues: [LaneID: LaneQueues] = [:]
    /// The texts that operations have in common.
    var texts = SharedTexts()
    /// Principals with a credential that an upstream has accepted.
    private var proved: Set<String> = []
    /// The operations that wait for the end of the key's operation.
    private var dependants: [Int64: Set<Int64>] = [:]
    /// The end of each lane's wait for an earlier attempt that may still run (docs/outbox.md#lane-holds, the zombie attempt).
    var holds: [LaneID: LaneHold] = [:]

    init(contexts: [String: ReplayContext]) { self.contexts = contexts }

    /// Removes all operations; proofs and holds stay.
    mutating func forgetOperations() { (entries, queues, dependants, texts) = ([:], [:], [:], SharedTexts()) }

    // MARK: operations

    /// Adds the ticket and the dependencies of an operation whose entry was replaced.
    /// - Parameter before: the replaced state; nil for a new operation.
    mutating func enter(_ summary: OperationSummary, after before: OperationSummary?) {
        if before.map({ LaneID($0) != LaneID(summary) || $0.place != summary.place || $0.principal != summary.principal }) ?? true {
            let ticket = ReplayMachine.Ticket(key: summary.place, sequence: summary.sequence)
            queues[LaneID(summary), default: LaneQueues()].own[summary.principal ?? "", default: []].insert(ticket)
        }
        if before?.needs != summary.needs {
            for need in summary.needs { dependants[need, default: []].insert(summary.sequence) }
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

    /// Returns and removes the operations that waited for the end of this one.
    mutating func takeDependants(of sequence: Int64) -> Set<Int64> { dependants.removeValue(forKey: sequence) ?? [] }

    /// Returns the dependants of all operations of this principal in this lane: a stuck operation blocks them all.
    func dependants(beside summary: OperationSummary) -> Set<Int64> {
        (queues[LaneID(summary)]?.own[summary.principal ?? ""]?.unordered ?? []).reduce(into: []) { all, ticket in
            all.formUnion(dependants[ticket.sequence] ?? [])
        }
    }

    // MARK: principals and holds

    /// Records that the principal is proved: from now on no unproved principal blocks it.
    /// - Returns: the lanes of its operations; empty if it was proved already.
    mutating func prove(_ principal: String) -> [LaneID] {
        guard proved.insert(principal).inserted else { return [] }
        return entries.filter { $0.value.summary.principal == principal }.map { sequence, entry in
            // Its ticket is in the unproved queue.
            entries[sequence]?.isFront = false
            return LaneID(entry.summary)
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
        for sequence in Array(entries.keys) { entries[sequence]?.setBack(by: span) }
        holds = holds.mapValues { $0.setBack(by: span) }
    }
}
