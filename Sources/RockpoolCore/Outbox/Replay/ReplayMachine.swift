// Replay as a pure state machine: events in, actions out, with time and randomness as parameters (docs/outbox.md#states,
// docs/outbox.md#lanes, docs/outbox.md#gate).
import HeapModule

/// All open operations, and the actions currently possible on each.
///
/// Its driver commits, sends and reports the outcomes; a simulator does the same without disk or network. An action marks its operation as
/// busy until the driver reports it as settled, so that no action is issued twice.
package struct ReplayMachine: Sendable {
    /// An input of the machine.
    package enum Event: Sendable {
        /// The stored state of an operation after its acceptance, its load at the start, or a person's command.
        case changed(OperationSummary)
        /// The action is committed, and this is the new state.
        case settled(OperationSummary)
        /// It was sent, with this outcome; nothing is recorded yet. `body` is the beginning of the answer's body. `mapping` is the created
        /// entity's identity from a create's answer.
        case attempted(QueuedWrite, AttemptOutcome, body: [UInt8], mapping: ServerMapping? = nil)
        /// The operation cannot be sent in its current form, and was not.
        case unsendable(QueuedWrite, Disposition)
        /// The upstream was probed for the operation's effect.
        case looked(QueuedWrite, ObservedEffect)
        /// The store failed to execute the action.
        case failed(sequence: Int64)
        /// An upstream became reachable or unreachable.
        case reachability(upstream: String, isReachable: Bool)
        /// At a start: an operation of this lane has ended with an attempt that may still run (`ReplayContext.holdsLane`). Sent before
        /// `changed`.
        case held(upstream: String, lane: String, principal: String?, until: Timestamp)
        /// An upstream has accepted a principal's credential.
        case proved(principal: String)
        /// A principal has shown a credential that works.
        case credential(principal: String)
        /// An upstream throttled in an answer that did not belong to one operation.
        case paused(upstream: String, until: Timestamp)
        /// Time has passed.
        case tick
    }

    /// An output of the machine.
    package enum Action: Hashable, Sendable {
        /// Commit it as in flight, then send it.
        case send(id: String, sequence: Int64)
        /// Probe the upstream for its effect, by safe requests only.
        case look(id: String, sequence: Int64)
        /// Commit the outcome of its attempt.
        case record(id: String, sequence: Int64, Disposition)
        /// Commit a change without an attempt.
        case move(id: String, sequence: Int64, Disposition)
    }

    /// The in-memory state of an open operation besides its row.
    struct Entry: Sendable {
        var summary: OperationSummary
        /// True while an action is not settled.
        var isBusy = false
        /// True while it counts as running at its upstream's gate.
        var hasLeft = false
        /// The earliest time of the next action after the store failed.
        var notBefore = Timestamp.distantPast
        /// The provisional disposition of its last answer, valid unless a probe shows that our own write took effect.
        var judgement: Disposition?
        /// True while it is in the queue of its upstream's gate.
        var isQueued = false
        /// True while it is in the front queue of its lane (`LaneQueues`).
        var isFront = false
        /// The time of its earliest ticket in `due`.
        var wakesAt: Timestamp?
        /// The number of credentials that its principal had shown at its last departure.
        var credentials = 0
        /// True if an attempt was lost and a resend relies on the key.
        var isDoubtful = false
        /// Until when an unanswered, unconditional attempt may still take effect and undo the next write.
        var mayRunUntil: Timestamp?

        init(summary: OperationSummary) { self.summary = summary }

        /// Copies the state that the row does not contain. After a start there is none, so it is derived from the row.
        mutating func remember(_ before: Entry?, context: ReplayContext?, now: Timestamp) {
            isDoubtful = summary.state == .uncertain || summary.reason == .lostAnswer
            guard let before else {
                isDoubtful = isDoubtful || summary.lostAt != nil
                guard isDoubtful, summary.probes < ReplayContext.probes, let context else { return }
                mayRunUntil = context.mayRunUntil(lostAt: summary.lostAt ?? now, now: now)
                return
            }
            (isQueued, wakesAt, credentials, mayRunUntil) = (before.isQueued, before.wakesAt, before.credentials, before.mayRunUntil)
            isFront =
                before.isFront && before.summary.place == summary.place && before.summary.principal == summary.principal
                && LaneID(before.summary) == LaneID(summary)
            // A change from uncertain to pending without a reason is a permission to send it twice, by a person or the policy.
            if before.summary.state != .uncertain || summary.state != .pending { isDoubtful = isDoubtful || before.isDoubtful }
        }
    }

    /// A time or a rank, with its operation.
    struct Ticket: Comparable, Sendable {
        var key: Int64
        var sequence: Int64

        static func < (a: Self, b: Self) -> Bool { (a.key, a.sequence) < (b.key, b.sequence) }
    }

    var contexts: [String: ReplayContext]
    var entries: [Int64: Entry] = [:]
    var lanes: [LaneID: LaneQueues] = [:]
    /// Principals with a credential that an upstream has accepted.
    var proved: Set<String> = []
    /// The operations that wait for the end of the key's operation.
    var dependants: [Int64: Set<Int64>] = [:]
    /// The end of each lane's wait for an earlier attempt that may still run (docs/outbox.md#lane-holds, the zombie attempt).
    var laneHolds: [LaneID: LaneHold] = [:]
    var gates: [String: UpstreamThrottle] = [:]
    /// Operations that may become ready by time, ordered by that time. Tickets may be out of date; each is checked when it is popped.
    var due = Heap<Ticket>()
    /// By principal: the operations that wait for its credential, and the number of credentials it has shown.
    var parked: [String: Set<Int64>] = [:]
    var credentials: [String: Int] = [:]
    /// Operations changed elsewhere while they were busy: their rows must be read again afterwards.
    var missed: Set<Int64> = []
    /// The wall-clock time of the last step.
    var lastStep: Timestamp?

    /// - Parameter contexts: by name of the upstream; operations of other upstreams wait.
    package init(contexts: [String: ReplayContext]) { self.contexts = contexts }

    /// Replaces the settings; waiting operations are re-evaluated at the next step.
    package mutating func reconfigure(_ contexts: [String: ReplayContext]) {
        guard contexts != self.contexts else { return }
        self.contexts = contexts
        for sequence in entries.keys { wake(sequence, at: .distantPast) }
    }

    /// Removes all operations for a reload; the gates keep their pauses.
    package mutating func forgetOperations() {
        (entries, lanes, dependants, due, parked, missed) = ([:], [:], [:], Heap(), [:], [])
        for upstream in gates.keys { gates[upstream]?.forgetOperations() }
    }

    /// - Parameter random: uniform in 0..<1.
    package mutating func step(_ event: Event, now: Timestamp, random: Double) -> [Action] {
        observe(now)
        var actions: [Action] = []
        switch event {
        case .changed(let summary):
            if entries[summary.sequence]?.isBusy == true { missed.insert(summary.sequence) } else { put(summary, now: now) }
        case .settled(let summary): put(summary, now: now)
        case .attempted(let operation, let outcome, let body, let mapping):
            actions += attempted(operation, outcome, body, mapping, now: now, random: random)
        case .unsendable(let operation, let disposition): actions += [record(operation, disposition, now: now)]
        case .looked(let operation, let effect): actions += looked(operation, effect, now: now)
        case .failed(let sequence): failed(sequence, now: now)
        case .reachability(let upstream, let isReachable): gates[upstream, default: UpstreamThrottle()].turned(isReachable: isReachable)
        case .held(let upstream, let lane, let principal, let moment):
            hold(LaneID(upstream: upstream, lane: lane), of: principal, until: moment, now: now)
        case .proved(let principal): prove(principal, now: now)
        case .credential(let principal): shown(by: principal, now: now)
        case .paused(let upstream, let moment): gates[upstream, default: UpstreamThrottle()].pause(until: moment)
        case .tick: break
        }
        return actions + dispatch(now: now)
    }

    /// The time of the next possible change by time alone; nil when nothing waits for time.
    package var nextWake: Timestamp? {
        let pauses = contexts.keys.lazy.compactMap { gates[$0] }.filter { !$0.ready.isEmpty && $0.isReachable }.compactMap(\.pausedUntil)
        return [due.min.map { Timestamp(milliseconds: $0.key) }, pauses.min()].compactMap { $0 }.min()
    }

    /// True if a sendable operation waits for `upstream`: then a reachability probe is useful.
    package func somethingWaits(for upstream: String) -> Bool { (gates[upstream]?.waiting ?? 0) > 0 }

    /// A principal with operations that wait for its credential.
    package struct ParkedIdentity: Hashable, Sendable {
        package var upstream: String
        package var principal: String
    }

    /// The principals with operations that wait for a credential.
    package var parkedIdentities: [ParkedIdentity] {
        parked.compactMap { principal, waiting in
            waiting.first.flatMap { entries[$0] }.map { ParkedIdentity(upstream: $0.summary.upstream, principal: principal) }
        }
    }

    /// Returns and clears the ids of operations that were changed while they were busy and must be read again.
    package mutating func takeMissed() -> [String] {
        let free = missed.filter { entries[$0]?.isBusy != true }
        missed.subtract(free)
        return free.sorted().compactMap { entries[$0]?.summary.id }
    }

    /// Returns the summary of an open operation.
    package func summary(of sequence: Int64) -> OperationSummary? { entries[sequence]?.summary }

    /// True if it was answered, and a probe decides the disposition.
    package func isJudging(_ sequence: Int64) -> Bool { entries[sequence]?.judgement != nil }

    /// The number of open operations.
    package var count: Int { entries.count }
}
