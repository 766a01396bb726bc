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

// MARK: - Entries

// What the machine remembers of an open operation besides its row.
extension ReplayMachine {
    /// The in-memory state of an open operation besides its row. It lies in memory of its own, because a table of entries has room for more
    /// than it holds.
    @dynamicMemberLookup struct Entry: Sendable {
        struct Fields: Sendable {
            var summary: OperationSummary
            /// True while an action is not settled.
            var isBusy = false
            /// True while it is in the queue of its upstream's gate.
            var isQueued = false
            /// True while it is among those that other clients wait for (`LaneQueues`).
            var isFront = false
            /// True while it has a ticket in its lane: it has not left the order.
            var isLined = false
            /// True while others may pass it that do not build on it (`ClientLine`).
            var isAside = false
            /// True if an attempt was lost and a resend relies on the key.
            var isDoubtful = false
            /// The number of credentials that its principal had shown at its last departure.
            var credentials = 0
            /// How often in a row the store has refused an action.
            var refusals = 0
            /// The earliest time of the next action after the store failed.
            var notBefore = Timestamp.distantPast
            /// The time of its earliest ticket in `due`.
            var wakesAt: Timestamp?
            /// Until when an unanswered, unconditional attempt may still take effect and undo the next write.
            var mayRunUntil: Timestamp?
            /// The provisional disposition of its last answer, valid unless a probe shows that our own write took effect.
            var judgement: Boxed<Disposition>?
        }

        private var fields: Boxed<Fields>

        subscript<T>(dynamicMember path: WritableKeyPath<Fields, T>) -> T {
            _read { yield fields.value[keyPath: path] }
            _modify { yield &fields.value[keyPath: path] }
        }

        init(summary: OperationSummary) { fields = Boxed(Fields(summary: summary)) }

        /// Copies the state that the row does not contain. After a start there is none, so it is derived from the row.
        mutating func remember(_ before: Entry?, context: ReplayContext?, now: Timestamp) {
            fields.value.remember(before?.fields.value, context: context, now: now)
        }

        /// Gives it another number, and takes it out of every order in which it stands under the old one.
        mutating func renumber(to sequence: Int64) { fields.value.renumber(to: sequence) }

        /// Shifts its waits after the wall clock was set back.
        mutating func setBack(by span: TimeSpan) { fields.value.setBack(by: span) }
    }
}

extension ReplayMachine.Entry.Fields {
    fileprivate mutating func remember(_ before: Self?, context: ReplayContext?, now: Timestamp) {
        isDoubtful = summary.state == .uncertain || summary.reason == .lostAnswer
        guard let before else {
            isDoubtful = isDoubtful || summary.lostAt != nil
            guard isDoubtful, summary.probes < ReplayContext.probes, let context else { return }
            mayRunUntil = context.mayRunUntil(lostAt: summary.lostAt ?? now, now: now)
            return
        }
        (isQueued, wakesAt, credentials, mayRunUntil) = (before.isQueued, before.wakesAt, before.credentials, before.mayRunUntil)
        let isInPlace =
            before.summary.place == summary.place && before.summary.principal == summary.principal
            && LaneClient(before.summary) == LaneClient(summary)
        isFront = before.isFront && isInPlace
        isLined = before.isLined && isInPlace
        isAside = before.isAside && isInPlace
        // A change from uncertain to pending without a reason is a permission to send it twice, by a person or the policy.
        if before.summary.state != .uncertain || summary.state != .pending { isDoubtful = isDoubtful || before.isDoubtful }
    }

    fileprivate mutating func renumber(to sequence: Int64) {
        if summary.place == summary.sequence { summary.place = sequence }
        summary.sequence = sequence
        (isQueued, isFront, isLined, isAside, wakesAt) = (false, false, false, false, nil)
    }

    fileprivate mutating func setBack(by span: TimeSpan) {
        summary.nextAttemptAt = summary.nextAttemptAt - span
        notBefore = notBefore - span
        mayRunUntil = mayRunUntil.map { $0 - span }
    }
}

// MARK: - Numbers

// The numbers of operations: their order, and where they are found. Their identity is the id (docs/fleet.md#away).
extension ReplayMachine {
    /// The number under which an operation is known by its id alone: it is busy, or numbers change.
    func number(of id: UUIDText) -> Int64? { numbers[id] }

    func number(of operation: QueuedWrite) -> Int64 { numbers[UUIDText(operation.id)] ?? operation.sequence }

    /// What is known of an operation, whatever number it has here.
    func entry(of summary: OperationSummary) -> Entry? {
        guard let entry = lanes.entries[numbers[summary.shortID] ?? summary.sequence], entry.summary.shortID == summary.shortID else {
            return nil
        }
        return entry
    }

    /// True if what was told of an operation may be older than what is known: an action is under way, or the operation was told with a greater
    /// number, as before it was handed over to its fleet.
    func mayBeLate(_ summary: OperationSummary) -> Bool {
        entry(of: summary)?.isBusy == true || numbers[summary.shortID].map { $0 < summary.sequence } ?? false
    }

    /// Moves an operation to the number that it has now. Another one that is known under that number is forgotten and read again.
    /// - Returns: true if it was known under another number.
    mutating func renumber(_ summary: OperationSummary, now: Timestamp) -> Bool {
        if let other = lanes.entries[summary.sequence]?.summary, other.shortID != summary.shortID {
            missed.insert(other.shortID)
            count(other, by: -1)
            waits.forget(other)
            lanes.remove(other.sequence, needs: other.needs)
            numbers[other.shortID] = nil
            offer(LaneClient(other), now: now)
        }
        guard let known = numbers[summary.shortID], known != summary.sequence, let before = lanes.entries[known]?.summary else {
            return false
        }
        waits.forget(before)
        gates[before.upstream]?.renumber(known, to: summary.sequence)
        lanes.renumber(known, to: summary.sequence)
        offer(LaneClient(before), now: now)
        return true
    }
}

// MARK: - Shared texts

/// Gives equal texts one storage: the names of upstreams, collections and principals are the same in thousands of operations.
package struct SharedTexts: Sendable {
    private var texts: Set<String> = []

    package init() {}

    /// Returns the stored text that equals `text`.
    package mutating func shared(_ text: String) -> String { texts.insert(text).memberAfterInsert }

    /// Returns the stored text that equals `text`; nil for nil.
    package mutating func shared(_ text: String?) -> String? { text.map { shared($0) } }
}

extension OperationSummary {
    /// Gives the texts that it has in common with others the storage of `texts`.
    package mutating func share(_ texts: inout SharedTexts) {
        (upstream, collection, principal) = (texts.shared(upstream), texts.shared(collection), texts.shared(principal))
        client = texts.shared(client)
        route = texts.shared(route)
    }
}

// MARK: - Waits for credentials

/// The parked operations of each principal, and the number of credentials that it has shown (docs/outbox.md#credentials).
struct CredentialWaits: Sendable {
    private(set) var parked: [String: Set<Int64>] = [:]
    private var credentials: [String: Int] = [:]

    /// Removes all operations; the counts of credentials stay.
    mutating func forgetOperations() { parked = [:] }

    /// Records whether the operation waits now.
    mutating func note(_ summary: OperationSummary) {
        guard let principal = summary.principal else { return }
        if isParked(summary) {
            parked[principal, default: []].insert(summary.sequence)
        } else {
            parked[principal]?.remove(summary.sequence)
        }
    }

    /// Forgets the number of an operation that gets another one.
    mutating func forget(_ summary: OperationSummary) {
        if let principal = summary.principal { parked[principal]?.remove(summary.sequence) }
    }

    /// Returns the number of credentials that the principal has shown.
    func shown(by principal: String?) -> Int { principal.flatMap { credentials[$0] } ?? 0 }

    /// Counts a live credential of the principal.
    /// - Returns: the operations that wait for one.
    mutating func show(by principal: String) -> Set<Int64> {
        credentials[principal, default: 0] += 1
        return parked[principal] ?? []
    }

    func isParked(_ summary: OperationSummary) -> Bool { summary.state == .parked && summary.reason == .auth }

    /// True if it is parked and its principal has shown a credential since its last attempt, or if it is anonymous and its parking time is
    /// over.
    func isAwake(_ entry: ReplayMachine.Entry, now: Timestamp) -> Bool {
        guard entry.summary.principal != nil else { return isParked(entry.summary) && entry.summary.nextAttemptAt <= now }
        // Parked by a proxy, it has a time of its own; otherwise the time is that of parking.
        return isParked(entry.summary) && entry.summary.nextAttemptAt <= now && entry.credentials < shown(by: entry.summary.principal)
    }
}
