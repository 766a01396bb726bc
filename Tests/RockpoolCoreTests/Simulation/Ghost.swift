// Facts known to the simulator but not to the system: every effect, every key, every acknowledgement; and its counters.
import HTTPTypes
import RockpoolCore

struct Ghost {
    var violations: [String] = []
    /// Sequences that were acknowledged with a 202.
    var acknowledged: Set<Int64> = []
    /// Number of effects of each operation at its upstream.
    var effects: [Int64: Int] = [:]
    /// The highest place of a lane that has taken effect.
    var reached: [String: Int64] = [:]
    /// The payload sent with each key, and the key sent with each operation.
    var payloads: [String: [UInt8]] = [:]
    var keys: [Int64: String] = [:]
    /// Number of times that a user permitted sending the operation again.
    var licences: [Int64: Int] = [:]
    /// Operations cancelled before anything was sent.
    var finallyCancelled: Set<Int64> = []

    /// The fetched body of an item with the time of the request. Survives crashes, as a cache does.
    var cache: [String: (body: JSONValue, at: Timestamp)] = [:]

    /// The view of the one client of a session.
    var session = Session()

    var steps = 0
    var crashes = 0
    var faults = 0
    var attempts = 0
    var zombies = 0
    var reads = 0
    var diskFaults = 0
    /// Counter for the unique number in every body.
    var marks = 0
}

extension World {
    /// Checks P5, P6, P11 and P13 when a request reaches its upstream.
    mutating func checkArrival(of operation: QueuedWrite, _ request: RequestHead, _ body: [UInt8]) {
        let sequence = operation.sequence
        ghost.attempts += 1
        let text = request.target + request.fields.map { "\($0.name): \($0.value)" }.joined() + String(decoding: body, as: UTF8.self)
        if text.contains("loc_") { violate("P5 \(sequence): \(text)") }
        let token = request.fields[.authorization]
        if token?.split(separator: ":").first.map(String.init) != operation.principal { violate("P6 \(sequence): \(token ?? "none")") }
        if ghost.finallyCancelled.contains(sequence) { violate("P13 \(sequence) was cancelled, and arrives") }
        guard let key = request.fields[.idempotencyKey] else { return violate("P11 \(sequence) has no key") }
        let payload = Array("\(request.method) \(request.target) ".utf8) + body
        if let known = ghost.keys[sequence], known != key { violate("P11 \(sequence): \(known), then \(key)") }
        if let known = ghost.payloads[key], known != payload { violate("P11 \(key) with two payloads") }
        ghost.keys[sequence] = key
        ghost.payloads[key] = payload
    }

    /// Checks P2, P3 and P4 when an operation takes effect.
    mutating func checkEffect(of operation: QueuedWrite) {
        let sequence = operation.sequence
        ghost.effects[sequence, default: 0] += 1
        note("EFFECT of \(sequence)")
        // Between principals, an operation that cannot be sent lets others pass; that order is checked at the lease.
        let lane = "\(operation.lane) of \(operation.principal ?? "nobody")"
        let reached = ghost.reached[lane] ?? 0
        // Nothing waits for what a lost attempt of a cancelled POST may still do: it undoes no other write (`ReplayContext.holdsLane`).
        let isGivenUp = disk.row(sequence).operation.state.hasEnded && operation.isEntityOfItsOwn
        if operation.place < reached, !disk.passed.contains(sequence), !isGivenUp {
            violate("P4 \(sequence) takes effect after place \(reached) of lane \(operation.lane)")
        }
        ghost.reached[lane] = max(reached, operation.place)
        guard let context = plan.upstreams[operation.upstream]?.context, !operation.request.method.isIdempotent else { return }
        if context.uncertainPolicy == .retry { return }
        let allowed = 1 + ghost.licences[sequence, default: 0]
        if ghost.effects[sequence, default: 0] > allowed {
            violate("\(context.idempotency.honoured == .yes ? "P2" : "P3") \(sequence) takes effect \(allowed + 1) times")
        }
    }

    /// Checks P1 and P14 after a start: the state on disk must be possible without the crash.
    mutating func checkRecovered() {
        for sequence in ghost.acknowledged where sequence > disk.rows.count { violate("P1 \(sequence) was acknowledged and is lost") }
        for row in disk.rows {
            let operation = row.operation
            if operation.state == .inflight { violate("P14 \(operation.sequence) in flight after a start") }
            if row.attempts.contains(where: { $0.ended == nil }) { violate("P14 \(operation.sequence) has an open attempt after a start") }
            if row.wasSent != (operation.firstSentAt != nil) { violate("P14 \(operation.sequence): the key's clock") }
        }
    }

    /// Checks P1 and P7 when no step is pending: only operations that need a user's decision, and those behind them, are left.
    mutating func checkQuiet() {
        guard ghost.violations.isEmpty, disk.violations.isEmpty else { return }
        checkDelivered()
        var order = disk.order(at: now)
        for summary in disk.open.map({ OperationSummary($0) }) {
            let blocker = order.blocker(of: summary)
            switch summary.state {
            case .pending where blocker == nil: violate("P7 \(summary.sequence) could go, and is not sent")
            case .inflight: violate("P7 \(summary.sequence) is in flight for ever")
            case .parked where summary.reason == .auth: violate("P7 \(summary.sequence) waits for a credential that is there")
            case .uncertain:
                guard let context = plan.upstreams[summary.upstream]?.context else { continue }
                if OperationMachine.settle(summary, context: context, now: now) != nil || summary.probes < ReplayContext.probes {
                    violate("P7 \(summary.sequence) stays uncertain")
                }
            default: break
            }
        }
    }

    /// Checks P1, P2 and P3: a delivered operation has taken effect, and every operation is in exactly one state.
    mutating func checkDelivered() {
        if let machine = process?.machine, machine.count != disk.open.count {
            violate("P1 the machine knows of \(machine.count) open operations, the disk of \(disk.open.count)")
        }
        for sequence in ghost.acknowledged where sequence > disk.rows.count { violate("P1 \(sequence) was acknowledged and is lost") }
        for row in disk.rows where row.operation.state == .delivered && row.operation.request.method != .delete {
            if ghost.effects[row.operation.sequence, default: 0] < 1 { violate("P2 \(row.operation.sequence) is delivered without effect") }
        }
    }

    mutating func checkEnd() {
        guard ghost.violations.isEmpty, disk.violations.isEmpty else { return }
        checkDelivered()
        let sum = OperationState.allCases.map { state in disk.rows.count { $0.operation.state == state } }.reduce(0, +)
        if sum != disk.rows.count || !ghost.acknowledged.isSubset(of: Set(disk.rows.map(\.operation.sequence))) { violate("P1 the sum") }
    }
}
