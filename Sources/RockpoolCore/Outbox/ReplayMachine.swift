// Replay as a value: from what has happened to what is to be done, with time and chance passed in (outbox.md §1.3, §1.8, §2.5, §2.6).
import HeapModule

/// Every open operation, and what may be done about each now.
///
/// Around it a shell commits, sends and tells what came of it; a simulator does the same without disk or network. What is asked for
/// makes an operation busy until the shell says that it is settled, so that nothing is asked for twice.
package struct ReplayMachine: Sendable {
    /// What has happened.
    package enum Event: Sendable {
        /// The store has it so: it was accepted, loaded at the start, or steered by a person.
        case changed(OperationSummary)
        /// What was asked for is committed, and this is how it stands now.
        case settled(OperationSummary)
        /// It was sent, and this came back; nothing is recorded yet. `body` is the beginning of the answer's.
        /// `mapping` is what a create's answer says that it became.
        case attempted(Operation, AttemptOutcome, body: [UInt8], mapping: ServerMapping? = nil)
        /// It cannot be sent as it is, and was not.
        case unsendable(Operation, Disposition)
        /// The upstream was asked whether the operation's effect is there.
        case looked(Operation, Effect)
        /// The store could not do what was asked for.
        case failed(sequence: Int64)
        /// An upstream answers, or does not.
        case reachability(upstream: String, isReachable: Bool)
        /// At a start: something of this lane has ended of which an attempt may still run (`ReplayContext.holdsLane`). Before `changed`.
        case held(upstream: String, lane: String, principal: String?, until: Timestamp)
        /// An upstream has accepted an identity's credential.
        case proved(principal: String)
        /// An identity has shown a credential that works.
        case credential(principal: String)
        /// An upstream asked for quiet, in an answer that was not one operation's.
        case paused(upstream: String, until: Timestamp)
        /// Time has passed.
        case tick
    }

    /// What is to be done.
    package enum Action: Hashable, Sendable {
        /// Commit it as in flight, then send it.
        case send(id: String, sequence: Int64)
        /// Ask the upstream, by safe requests only, whether its effect is there.
        case look(id: String, sequence: Int64)
        /// Commit what came of its attempt.
        case record(id: String, sequence: Int64, Disposition)
        /// Commit a change without an attempt.
        case move(id: String, sequence: Int64, Disposition)
    }

    /// What is held of an open operation beside its row.
    struct Entry: Sendable {
        var summary: OperationSummary
        /// Something was asked for and is not settled.
        var isBusy = false
        /// It counts among what is under way to its upstream.
        var hasLeft = false
        /// The store failed over it: not before this.
        var notBefore = Timestamp.distantPast
        /// What its last answer means, unless a look at the upstream shows that it is our own write that stands there.
        var judgement: Disposition?
        /// It stands in the queue of its upstream's gate.
        var isQueued = false
        /// It stands among the first of its lane (`LaneQueues`).
        var isFront = false
        /// The moment of its earliest ticket in `due`.
        var wakesAt: Timestamp?
        /// How many credentials its identity had shown when it last left.
        var credentials = 0
        /// An attempt of it was lost; sending it again leans on its key.
        var isDoubtful = false
        /// So long an attempt of it may still take effect, with nothing to keep it from undoing what comes next.
        var mayRunUntil: Timestamp?

        init(summary: OperationSummary) { self.summary = summary }

        /// Carries over what the row does not say. Nothing is known before a start: then what the row hints at must do.
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
            // Whoever made the uncertain one pending for no reason of its own has said that it may be sent twice.
            if before.summary.state != .uncertain || summary.state != .pending { isDoubtful = isDoubtful || before.isDoubtful }
        }
    }

    /// A moment or a rank, and whom it concerns.
    struct Ticket: Comparable, Sendable {
        var key: Int64
        var sequence: Int64

        static func < (a: Self, b: Self) -> Bool { (a.key, a.sequence) < (b.key, b.sequence) }
    }

    var contexts: [String: ReplayContext]
    var entries: [Int64: Entry] = [:]
    var lanes: [LaneID: LaneQueues] = [:]
    /// Principals whose credential an upstream has accepted.
    var proved: Set<String> = []
    /// Who waits for whom to end.
    var dependants: [Int64: Set<Int64>] = [:]
    /// A successor waits so long for an earlier attempt that may still run (outbox.md §2.4, the zombie attempt).
    var laneHolds: [LaneID: LaneHold] = [:]
    var gates: [String: UpstreamGate] = [:]
    /// Whoever may become ready by time, by that time. Tickets may be out of date; each is checked when it comes up.
    var due = Heap<Ticket>()
    /// By principal: who waits for its credential, and how many it has shown.
    var parked: [String: Set<Int64>] = [:]
    var credentials: [String: Int] = [:]
    /// Changed by somebody else while something was under way: how they stand must be read again afterwards.
    var missed: Set<Int64> = []
    /// When the last step was, by the wall clock.
    var lastStep: Timestamp?

    /// - Parameter contexts: by name of the upstream; operations of others wait.
    package init(contexts: [String: ReplayContext]) { self.contexts = contexts }

    /// Takes new settings; what waits is judged by them from the next step on.
    package mutating func reconfigure(_ contexts: [String: ReplayContext]) {
        guard contexts != self.contexts else { return }
        self.contexts = contexts
        for sequence in entries.keys { wake(sequence, at: .distantPast) }
    }

    /// Starts over with the operations; what the upstreams asked for stays.
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
        case .reachability(let upstream, let isReachable): gates[upstream, default: UpstreamGate()].turned(isReachable: isReachable)
        case .held(let upstream, let lane, let principal, let moment):
            hold(LaneID(upstream: upstream, lane: lane), of: principal, until: moment, now: now)
        case .proved(let principal): prove(principal, now: now)
        case .credential(let principal): shown(by: principal, now: now)
        case .paused(let upstream, let moment): gates[upstream, default: UpstreamGate()].pause(until: moment)
        case .tick: break
        }
        return actions + dispatch(now: now)
    }

    /// When something may become ready by time alone; nil when nothing waits for time.
    package var nextWake: Timestamp? {
        let pauses = contexts.keys.lazy.compactMap { gates[$0] }.filter { !$0.ready.isEmpty && $0.isReachable }.compactMap(\.pausedUntil)
        return [due.min.map { Timestamp(milliseconds: $0.key) }, pauses.min()].compactMap { $0 }.min()
    }

    /// Whether anything that could be sent waits for `upstream`: then it is worth a probe.
    package func somethingWaits(for upstream: String) -> Bool { (gates[upstream]?.waiting ?? 0) > 0 }

    /// An identity whose operations wait for its credential.
    package struct ParkedIdentity: Hashable, Sendable {
        package var upstream: String
        package var principal: String
    }

    /// Whose operations wait for a credential.
    package var parkedIdentities: [ParkedIdentity] {
        parked.compactMap { principal, waiting in
            waiting.first.flatMap { entries[$0] }.map { ParkedIdentity(upstream: $0.summary.upstream, principal: principal) }
        }
    }

    /// Operations whose rows have to be read again, because they were changed while they were busy; told once, by their ids.
    package mutating func takeMissed() -> [String] {
        let free = missed.filter { entries[$0]?.isBusy != true }
        missed.subtract(free)
        return free.sorted().compactMap { entries[$0]?.summary.id }
    }

    /// Where an operation stands, as far as it is open.
    package func summary(of sequence: Int64) -> OperationSummary? { entries[sequence]?.summary }

    /// Whether it was answered, and a look decides what that means.
    package func isJudging(_ sequence: Int64) -> Bool { entries[sequence]?.judgement != nil }

    /// How many are open.
    package var count: Int { entries.count }
}
