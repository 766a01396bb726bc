// What holds back an operation, and the order of ready ones (docs/outbox.md#lanes, docs/outbox.md#principals).

/// The order among open operations, determined from their summaries alone: for live writes, for what is shown of an operation, and as the
/// slow statement of the order that `ReplayMachine` keeps.
package struct ReplayOrder {
    /// The waiting time that equals one step of priority, so that low priorities are sent eventually.
    package static let ageingStep = TimeSpan.seconds(3)

    /// Returns the order among ready operations, lowest first. Waiting raises all operations equally, so the relative order never changes
    /// and needs no clock: one step of priority equals one `ageingStep`.
    static func rank(_ operation: OperationSummary) -> Int64 {
        operation.acceptedAt.milliseconds.addedClamped(Int64(operation.priority) * ageingStep.milliseconds)
            .addedClamped(operation.isTelemetry ? telemetryDelay.milliseconds : 0)
    }

    /// Telemetry is sent where nothing else of its upstream is ready: longer than anything waits.
    private static let telemetryDelay = TimeSpan.days(50_000_000)

    /// One client's operations in a lane that have not left its order.
    private struct Line {
        /// Those at the front that hold back their entity at most.
        var aside: [OperationSummary] = []
        /// The first that holds all behind it.
        var head: OperationSummary?
    }

    private let open: [Int64: OperationSummary]
    private let lines: [LaneClient: [OperationSummary]]
    private let context: (String) -> ReplayContext?
    private let isProved: (String?) -> Bool
    private let now: Timestamp
    private var sorted: [LaneClient: Line] = [:]

    /// - Parameters:
    ///   - operations: the operations that matter; those that have ended are ignored.
    ///   - context: the settings of an upstream.
    ///   - isProved: true if an upstream has accepted the principal's credential.
    package init(
        _ operations: [OperationSummary], context: @escaping (String) -> ReplayContext?,
        isProved: @escaping (String?) -> Bool = { _ in false }, now: Timestamp
    ) {
        let open = operations.filter { !$0.state.hasEnded }
        self.open = Dictionary(open.map { ($0.sequence, $0) }) { _, last in last }
        lines = Dictionary(grouping: open, by: LaneClient.init).mapValues {
            $0.sorted { ($0.place, $0.sequence) < ($1.place, $1.sequence) }
        }
        (self.context, self.isProved, self.now) = (context, isProved, now)
    }

    /// Returns the operation that `operation` waits for, the earliest if there are several; nil when it may be sent. It need not be among
    /// those that this order was made from.
    package mutating func blocker(of operation: OperationSummary) -> OperationSummary? {
        var found: [OperationSummary] = []
        for need in operation.needs where !isPassed(need, by: operation) { found += open[need].map { [$0] } ?? [] }
        let own = line(of: LaneClient(operation))
        if let head = own.head, head.comesBefore(operation) { found.append(head) }
        if let entity = operation.entity { found += own.aside.filter { $0.place < operation.place && $0.entity == entity } }
        if !operation.isApart {
            for place in lines.keys where place.lane == operation.lane && place.client != operation.client {
                let other = line(of: place)
                found += ((other.head.map { [$0] } ?? []) + other.aside).filter { holdsOthers($0) && $0.place < operation.place }
                    .filter { isProved($0.principal) || !isProved(operation.principal) }
            }
        }
        return found.filter { $0.id != operation.id }.min { $0.sequence < $1.sequence }
    }

    /// True if later operations of its client in its lane may pass it.
    package mutating func mayBePassed(_ operation: OperationSummary) -> Bool {
        reach(operation).own != .lane || line(of: LaneClient(operation)).aside.contains { $0.sequence == operation.sequence }
    }

    private func reach(_ operation: OperationSummary) -> LaneReach { operation.reach(in: context(operation.upstream), now: now) }

    private func isStuck(_ operation: OperationSummary) -> Bool {
        OperationMachine.isStuck(operation, context: context(operation.upstream), now: now)
    }

    private func holdsOthers(_ operation: OperationSummary) -> Bool {
        let reach = reach(operation)
        return reach.holdsOthers && !isStuck(operation) && (reach.own == .entity || operation.state != .pending || !isAside(operation))
    }

    private func isAside(_ operation: OperationSummary) -> Bool {
        sorted[LaneClient(operation)]?.aside.contains { $0.sequence == operation.sequence } ?? false
    }

    private mutating func line(of place: LaneClient) -> Line {
        if let known = sorted[place] { return known }
        var line = Line(head: lines[place]?.first { $0.state == .inflight })
        // What one needs may need an earlier one of this line. Operations that need each other in a circle wait for a person.
        sorted[place] = Line()
        for operation in lines[place] ?? [] {
            // One that was sent while another stood aside does not bring that one back.
            if operation.state == .inflight { break }
            let reach = reach(operation)
            if reach.own == .lane, !standsAside(operation, behind: line.aside) {
                line.head = line.head ?? operation
                break
            }
            guard reach.own != .nothing else { continue }
            line.aside.append(operation)
            sorted[place]?.aside = line.aside
        }
        sorted[place] = line
        return line
    }

    private mutating func standsAside(_ operation: OperationSummary, behind aside: [OperationSummary]) -> Bool {
        guard operation.state == .pending else { return false }
        if let entity = operation.entity, aside.contains(where: { $0.entity == entity }) { return true }
        for need in operation.needs where !isPassed(need, by: operation) && isBlocked(need) { return true }
        return false
    }

    private mutating func isPassed(_ need: Int64, by operation: OperationSummary) -> Bool {
        guard let needed = open[need] else { return true }
        guard operation.follows.contains(need) else { return false }
        let line = line(of: LaneClient(needed))
        if needed.state == .pending { return line.aside.contains { $0.sequence == need } }
        let reach = reach(needed)
        return reach.own != .lane && !reach.holdsOthers
    }

    /// True if an open operation waits for a person or a credential, or for an operation that does.
    private mutating func isBlocked(_ sequence: Int64) -> Bool {
        guard let operation = open[sequence] else { return false }
        if isStuck(operation) { return true }
        let line = line(of: LaneClient(operation))
        if operation.state == .pending, line.aside.contains(where: { $0.sequence == sequence }) { return true }
        return line.head.map { $0.place < operation.place && isStuck($0) } ?? false
    }
}

extension OperationSummary {
    /// True if its place is before that of another one in its lane, or it is being sent already.
    fileprivate func comesBefore(_ other: OperationSummary) -> Bool {
        place < other.place || state == .inflight && sequence != other.sequence
    }
}

extension OperationState {
    /// True if it waits for a person or a credential.
    package var isStuck: Bool { self == .parked || self == .conflicted || self == .dead }
}
