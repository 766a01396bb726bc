// Which operations may be sent now: the heads of lanes, by priority with ageing, then by acceptance (outbox.md §1.8, §2.6).

/// What the order reads of an operation that has not ended; light enough to hold for every open one.
package struct OperationSummary: Hashable, Sendable, Identifiable {
    /// Acceptance order.
    package var sequence: Int64
    /// The public id.
    package var id: String
    /// Where it stands.
    package var state: OperationState
    /// The lane it is in.
    package var lane: String
    /// Name of the declared upstream.
    package var upstream: String
    /// −100…100, lower goes first.
    package var priority: Int
    /// Whose write it is.
    package var principal: String?
    /// Ageing counts from here.
    package var acceptedAt: Timestamp
    /// Not sent before this.
    package var nextAttemptAt: Timestamp
    /// Sequences of operations of other lanes that must have ended first.
    package var needs: Set<Int64>

    package init(
        sequence: Int64, id: String, state: OperationState, lane: String, upstream: String, priority: Int = 0, principal: String? = nil,
        acceptedAt: Timestamp, nextAttemptAt: Timestamp, needs: Set<Int64> = []
    ) {
        self.sequence = sequence
        self.id = id
        self.state = state
        self.lane = lane
        self.upstream = upstream
        self.priority = priority
        self.principal = principal
        self.acceptedAt = acceptedAt
        self.nextAttemptAt = nextAttemptAt
        self.needs = needs
    }

    package init(_ operation: Operation, needs: Set<Int64> = []) {
        self.init(
            sequence: operation.sequence, id: operation.id, state: operation.state, lane: operation.lane, upstream: operation.upstream,
            priority: operation.priority, principal: operation.principal, acceptedAt: operation.acceptedAt,
            nextAttemptAt: operation.nextAttemptAt, needs: needs)
    }
}

/// The order of replay. A lane is held by its first operation that has not ended, whatever its state: one that is dead, conflicted,
/// parked or uncertain lets none of its lane jump over it, and holds no other lane.
package enum ReplayOrder {
    /// How long an operation waits to gain one step of priority, so that low ones are sent in the end.
    package static let ageingStep = TimeSpan.seconds(3)

    /// Ids that may be sent at `now`, in the order to send them; one of each lane at most.
    package static func ready(_ open: [OperationSummary], now: Timestamp) -> [String] {
        waitingHeads(of: open)
            .filter { $0.nextAttemptAt <= now }
            .map { (rank: rank($0, now: now), operation: $0) }
            .sorted { ($0.rank, $0.operation.sequence) < ($1.rank, $1.operation.sequence) }
            .map(\.operation.id)
    }

    /// When the next one becomes ready by time alone; nil when nothing waits for time.
    package static func nextDue(_ open: [OperationSummary]) -> Timestamp? {
        waitingHeads(of: open).map(\.nextAttemptAt).min()
    }

    /// The operation that holds `operation` back: the first open one of its lane, or one it needs; nil when it may go.
    package static func blocker(of operation: OperationSummary, among open: [OperationSummary]) -> OperationSummary? {
        open.filter { other in
            !other.state.hasEnded && other.id != operation.id
                && (operation.needs.contains(other.sequence) || isSameLane(other, operation) && other.sequence < operation.sequence)
        }.min { $0.sequence < $1.sequence }
    }

    /// Pending heads of lanes whose needs have ended, whether due or not.
    private static func waitingHeads(of open: [OperationSummary]) -> [OperationSummary] {
        var heads: [LaneID: OperationSummary] = [:]
        var unended: Set<Int64> = []
        for operation in open where !operation.state.hasEnded {
            unended.insert(operation.sequence)
            let lane = LaneID(upstream: operation.upstream, lane: operation.lane)
            if let head = heads[lane], head.sequence < operation.sequence { continue }
            heads[lane] = operation
        }
        return heads.values.filter { $0.state == .pending && $0.needs.isDisjoint(with: unended) }
    }

    private static func rank(_ operation: OperationSummary, now: Timestamp) -> Int64 {
        let waited = max((now - operation.acceptedAt).milliseconds, 0)
        return Int64(operation.priority).addedClamped(-(waited / ageingStep.milliseconds))
    }

    private static func isSameLane(_ a: OperationSummary, _ b: OperationSummary) -> Bool { a.upstream == b.upstream && a.lane == b.lane }

    private struct LaneID: Hashable {
        var upstream: String
        var lane: String
    }
}
