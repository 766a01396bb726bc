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
    /// The end of each lane's wait for an earlier attempt that may still run (docs/outbox.md#lane-holds, the zombie attempt).
    var holds: [LaneID: LaneHold] = [:]

    init(contexts: [String: ReplayContext]) { self.contexts = contexts }

    /// Removes all operations; proofs and holds stay.
    mutating func forgetOperations() { (entries, contents, dependants, texts) = (SequenceTable(), [:], [:], SharedTexts()) }

    // MARK: operations

    /// Adds the ticket and the dependencies of an operation whose entry was replaced.
    /// - Parameter before: the replaced state; nil for a new operation.
    mutating func enter(_ summary: OperationSummary, after before: OperationSummary?) {
        if before.map({ $0.lane != summary.lane || $0.place != summary.place || $0.principal != summary.principal }) ?? true {
            line(up: summary)
        }
        if before?.needs != summary.needs {
            for need in summary.needs { dependants[need, default: []].insert(summary.sequence) }
        }
    }

    /// Adds the ticket of an operation to its lane.
    private mutating func line(up summary: OperationSummary) {
        var queues = LaneQueues()
        switch contents[summary.lane] {
        case .several: contents[summary.lane]?.changeQueues { $0.add(summary) }
        case .one(let first) where first != summary.sequence && entries[first]?.summary.lane == summary.lane:
            if let entry = entries[first] {
                queues.add(entry.summary)
                if entry.isFront { queues.addFront(entry.summary, isProved: isProved(entry.summary.principal)) }
            }
            queues.add(summary)
            contents[summary.lane] = .several(Boxed(queues))
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

    /// Returns and removes the operations that waited for the end of this one.
    mutating func takeDependants(of sequence: Int64) -> Set<Int64> { dependants.removeValue(forKey: sequence) ?? [] }

    /// Returns the dependants of all operations of this principal in this lane: a stuck operation blocks them all.
    func dependants(beside summary: OperationSummary) -> Set<Int64> {
        let beside: [Int64] =
            switch contents[summary.lane] {
            case .one(let sequence): [sequence]
            case .several(let queues): queues.value.own[summary.principal ?? ""]?.unordered.map(\.sequence) ?? []
            case nil: []
            }
        return beside.reduce(into: []) { all, sequence in all.formUnion(dependants[sequence] ?? []) }
    }

    // MARK: principals and holds

    /// Records that the principal is proved: from now on no unproved principal blocks it.
    /// - Returns: the lanes of its operations; empty if it was proved already.
    mutating func prove(_ principal: String) -> [LaneID] {
        guard proved.insert(principal).inserted else { return [] }
        return entries.all.filter { $0.value.summary.principal == principal }.map { sequence, entry in
            // Its ticket is in the unproved queue.
            entries[sequence]?.isFront = false
            return entry.summary.lane
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
    }
}
