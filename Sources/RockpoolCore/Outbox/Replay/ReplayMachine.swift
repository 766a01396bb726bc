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
        /// The row of an operation that `takeMissed` has named.
        case reread(OperationSummary)
        /// The action is committed, and this is the new state.
        case settled(OperationSummary)
        /// It was sent, with this outcome; nothing is recorded yet. `body` is the beginning of the answer's body. `mapping` is the created
        /// entity's identity from a create's answer. `reading` is how an answer of 2xx is read.
        case attempted(QueuedWrite, AttemptOutcome, body: [UInt8], mapping: ServerMapping? = nil, reading: AnswerReading = AnswerReading())
        /// The operation cannot be sent in its current form, and was not.
        case unsendable(QueuedWrite, Disposition)
        /// The upstream was probed for the operation's effect.
        case looked(QueuedWrite, ObservedEffect)
        /// The store failed to execute the action.
        case failed(id: String)
        /// The store does not take what the action changes, and would not another time.
        case refused(id: String)
        /// An upstream became reachable or unreachable.
        case reachability(upstream: String, isReachable: Bool)
        /// At a start: an operation of this lane has ended with an attempt that may still run (`ReplayContext.holdsLane`). Sent before
        /// `changed`.
        case held(upstream: String, lane: String, principal: String?, until: Timestamp)
        /// An upstream has accepted a principal's credential.
        case proved(principal: String)
        /// A principal has shown a credential that works.
        case credential(principal: String)
        /// An upstream has told the client of an operation to wait.
        case throttled(id: String, until: Timestamp)
        /// The budget of an upstream is spent.
        case paused(upstream: String, until: Timestamp)
        /// A person ends the pause of an upstream.
        case resumed(upstream: String)
        /// A write was answered that the machine has not sent: a live one, or one of a batch. `id` is nil for a live one.
        case answered(upstream: String, route: String, client: String, RouteSign, id: String?)
        /// A person ends the pauses of an upstream's routes.
        case overruled(upstream: String)
        /// A person has an operation sent although its route pauses. Sent after `changed`.
        case urged(OperationSummary)
        /// Time has passed.
        case tick
    }

    /// An output of the machine. What becomes of it is told by the operation's id: its number may change meanwhile.
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

    /// A time or a rank, with its operation.
    struct Ticket: Comparable, Sendable {
        var key: Int64
        var sequence: Int64

        static func < (a: Self, b: Self) -> Bool { (a.key, a.sequence) < (b.key, b.sequence) }
    }

    /// The open operations, and their order.
    var lanes: LaneTable
    /// The numbers under which operations are known, by id: of those that are busy, and of all where numbers change.
    var numbers: [UUIDText: Int64] = [:]
    /// True if an operation may get another number: in a fleet.
    let changesNumbers: Bool
    /// The operations that wait for a credential.
    var waits = CredentialWaits()
    var gates: [String: UpstreamThrottle] = [:]
    /// Operations that may become ready by time, ordered by that time. Tickets may be out of date; each is checked when it is popped.
    var due = Heap<Ticket>()
    /// Operations changed elsewhere while they were busy, or known under another number than was told: their rows must be read again.
    var missed: Set<UUIDText> = []
    /// The wall-clock time of the last step.
    var lastStep: Timestamp?

    /// - Parameters:
    ///   - contexts: by name of the upstream; operations of other upstreams wait.
    ///   - changesNumbers: true if an operation may get another number.
    package init(contexts: [String: ReplayContext], changesNumbers: Bool = false) {
        lanes = LaneTable(contexts: contexts)
        self.changesNumbers = changesNumbers
    }

    /// Replaces the settings; waiting operations are re-evaluated at the next step.
    package mutating func reconfigure(_ contexts: [String: ReplayContext]) {
        guard contexts != lanes.contexts else { return }
        lanes.contexts = contexts
        for (sequence, _) in lanes.entries.all { wake(sequence, at: .distantPast) }
    }

    /// Removes all operations for a reload; the gates keep their pauses.
    package mutating func forgetOperations() {
        lanes.forgetOperations()
        waits.forgetOperations()
        (due, missed, numbers) = (Heap(), [], [:])
        for upstream in gates.keys { gates[upstream]?.forgetOperations() }
    }

    /// The time of the next possible change by time alone; nil when nothing waits for time.
    package var nextWake: Timestamp? {
        let pauses = lanes.contexts.keys.lazy.compactMap { gates[$0] }.filter { !$0.ready.isEmpty && $0.isReachable }.compactMap(
            \.pausedUntil)
        let tests = lanes.contexts.keys.lazy.compactMap { gates[$0]?.nextTest }
        return [due.min.map { Timestamp(milliseconds: $0.key) }, pauses.min(), tests.min()].compactMap { $0 }.min()
    }

    /// The pauses of routes after mass refusals, by upstream.
    package var routePauses: [String: [RoutePause]] { gates.mapValues(\.routePauses).filter { !$0.value.isEmpty } }

    /// The ends of the pauses that upstreams demand, of all clients or of some. Some may be over.
    package var pauses: [String: Timestamp] {
        lanes.pauses.compactMapValues(\.longest).merging(gates.compactMapValues(\.pausedUntil)) { max($0, $1) }
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
        waits.parked.compactMap { principal, waiting in
            waiting.first.flatMap { lanes.entries[$0] }.map { ParkedIdentity(upstream: $0.summary.upstream, principal: principal) }
        }
    }

    /// Returns and clears the ids of operations that were changed while they were busy and must be read again.
    package mutating func takeMissed() -> [String] {
        let free = missed.map { (id: $0, number: numbers[$0] ?? .max) }.filter { lanes.entries[$0.number]?.isBusy != true }
        missed.subtract(free.map(\.id))
        return free.sorted { $0.number < $1.number }.map(\.id.text)
    }

    /// Returns the summary of an open operation by its number.
    package func summary(of sequence: Int64) -> OperationSummary? { lanes.entries[sequence]?.summary }

    /// Returns the summary of an operation with an action under way.
    package func summary(ofBusy id: String) -> OperationSummary? { number(of: UUIDText(id)).flatMap { lanes.entries[$0]?.summary } }

    /// True if it was answered, and a probe decides the disposition.
    package func isJudging(_ id: String) -> Bool { number(of: UUIDText(id)).flatMap { lanes.entries[$0]?.judgement } != nil }

    /// The number of operations in flight that count against the limit of their upstream, by its name.
    package var running: [String: Int] { gates.mapValues(\.running) }

    /// The number of open operations.
    package var count: Int { lanes.entries.count }
}
