// The committed transactions, which are all that survives a crash (docs/outbox.md#schema; the store's own rules, DataStore+Transition).
import HTTPTypes
import RockpoolCore

struct SimulatedDisk {
    struct Attempt {
        var started: Timestamp
        var ended: Timestamp?
        var sent: TransferFailure.Sent?
        var mayStillRun = false
    }

    struct Row {
        var operation: QueuedWrite
        var attempts: [Attempt] = []
        var wasSent: Bool { attempts.contains { $0.ended == nil || $0.sent != .no } }
    }

    /// Rows by sequence, from 1.
    private(set) var rows: [Row] = []
    private(set) var mappings: [LocalID: ServerMapping] = [:]
    /// Violations of P12, and other actions that the store had to refuse.
    private(set) var violations: [String] = []
    var contexts: [String: ReplayContext] = [:]
    /// The operations that have ever left the order of their lane or stood aside, and those that a later one was sent before.
    private var left: Set<Int64> = []
    private(set) var passed: Set<Int64> = []

    func row(_ sequence: Int64) -> Row { rows[Int(sequence) - 1] }
    var open: [QueuedWrite] { rows.map(\.operation).filter { !$0.state.hasEnded } }

    private mutating func change(_ sequence: Int64, _ body: (inout Row) -> Void) {
        let before = row(sequence).operation
        body(&rows[Int(sequence) - 1])
        noteLeft()
        let after = row(sequence).operation.state
        if before.state != after, !OperationMachine.permits(from: before.state, to: after) {
            violations.append("P12 \(sequence): \(before.state) → \(after)")
        }
    }

    mutating func append(_ operation: QueuedWrite) -> QueuedWrite {
        var operation = operation
        operation.sequence = Int64(rows.count + 1)
        if operation.place == 0 { operation.place = operation.sequence }
        operation.id = "\(operation.sequence)"
        operation.idempotencyKey = "key-\(operation.sequence)"
        rows.append(Row(operation: operation))
        return operation
    }

    /// Appends an operation; `sent` is its live attempt, the answer to which was lost.
    mutating func append(_ operation: QueuedWrite, after sent: RequestHead?, at moment: Timestamp) -> QueuedWrite {
        var row = append(operation)
        guard let sent else { return row }
        (row.firstSentAt, row.lostAt) = (moment, moment)
        row.idempotencyKey = sent.fields[.idempotencyKey] ?? ""
        rows[Int(row.sequence) - 1].operation = row
        rows[Int(row.sequence) - 1].attempts = [Attempt(started: moment, ended: moment, sent: .yes, mayStillRun: true)]
        return row
    }

    mutating func lease(_ sequence: Int64, now: Timestamp) -> QueuedWrite? {
        let operation = row(sequence).operation
        guard operation.state == .pending else { return nil }
        notePassed(by: operation, now: now)
        change(sequence) {
            $0.operation.state = .inflight
            $0.operation.reason = nil
            $0.operation.probes = 0
            $0.operation.firstSentAt = $0.operation.firstSentAt ?? now
            $0.attempts.append(Attempt(started: now))
        }
        return row(sequence).operation
    }

    /// Notes the operations that one passes: those of its client before it in its lane. Each must have left the order at some time, or stand
    /// aside: a command of a person that the machine has not heard of may have brought it back.
    private mutating func notePassed(by operation: QueuedWrite, now: Timestamp) {
        var order = order(at: now)
        for other in open where other.lane == operation.lane && other.principal == operation.principal && other.place < operation.place {
            if !left.contains(other.sequence), !order.mayBePassed(OperationSummary(other)) {
                violations.append("P4 \(operation.sequence) passes \(other.sequence) \(other.state)")
            }
            passed.insert(other.sequence)
        }
        for need in operation.needs.subtracting(operation.follows) where !row(need).operation.state.hasEnded {
            violations.append("P4 \(operation.sequence) is sent before \(need), which it needs")
        }
    }

    /// Notes the operations that may be passed now: one that is sent before them later may have been chosen now.
    private mutating func noteLeft() {
        var order = order(at: .distantPast)
        for operation in open where !left.contains(operation.sequence) && order.mayBePassed(OperationSummary(operation)) {
            left.insert(operation.sequence)
        }
    }

    func order(at now: Timestamp) -> ReplayOrder {
        let contexts = contexts
        return ReplayOrder(open.map { OperationSummary($0) }, context: { contexts[$0] }, now: now)
    }

    /// - Returns: nil when the operation is not in flight.
    mutating func finish(
        _ sequence: Int64, _ disposition: Disposition, outcome: (outcome: AttemptOutcome, body: [UInt8])?, now: Timestamp
    ) -> QueuedWrite? {
        guard row(sequence).operation.state == .inflight else { return nil }
        var (sent, result): (TransferFailure.Sent, OperationResult?) = (.no, nil)
        switch outcome?.outcome {
        case .answered(let head): (sent, result) = (.yes, OperationResult(head: head, body: outcome?.body ?? []))
        case .failed(let failure): sent = failure.sent
        case nil: break
        }
        endAttempt(sequence, sent: sent, mayStillRun: outcome?.outcome.mayStillRun ?? false, now: now)
        change(sequence) {
            $0.operation.answeredAttempts += disposition.countsAsAnswered ? 1 : 0
            $0.operation.networkAttempts += disposition.countsAsAnswered ? 0 : 1
            $0.operation.result = result
            Self.apply(disposition, to: &$0.operation, now: now)
        }
        map(sequence, disposition)
        return row(sequence).operation
    }

    /// - Returns: the row, changed if its state was in `from`.
    mutating func move(_ sequence: Int64, _ disposition: Disposition, from: Set<OperationState>, now: Timestamp) -> QueuedWrite {
        let before = row(sequence).operation
        guard from.contains(before.state) else { return before }
        if before.state == .inflight { endAttempt(sequence, sent: .maybe, mayStillRun: true, now: now) }
        change(sequence) {
            if before.state == .dead, disposition.state == .pending { $0.operation.answeredAttempts = 0 }
            if disposition.countsAsProbe { $0.operation.probes += 1 } else if disposition.state != .uncertain { $0.operation.probes = 0 }
            Self.apply(disposition, to: &$0.operation, now: now)
        }
        map(sequence, disposition)
        return row(sequence).operation
    }

    /// Puts an edited operation in the place of another one, also as a dependency of others.
    mutating func replace(_ sequence: Int64, by edited: QueuedWrite, now: Timestamp) -> (old: QueuedWrite, new: QueuedWrite) {
        let new = append(edited)
        change(sequence) {
            $0.operation.state = .superseded
            $0.operation.reason = .edited
            $0.operation.endedAt = now
        }
        for index in rows.indices where rows[index].operation.needs.remove(sequence) != nil {
            rows[index].operation.needs.insert(new.sequence)
        }
        if left.contains(sequence) { left.insert(new.sequence) }
        if passed.contains(sequence) { passed.insert(new.sequence) }
        return (row(sequence).operation, new)
    }

    /// Recovery at a start: a request that was being sent may have arrived (docs/outbox.md#wire-rule).
    mutating func recover(now: Timestamp, asUnsent: Bool) {
        for row in rows where row.operation.state == .inflight {
            endAttempt(row.operation.sequence, sent: asUnsent ? .no : .maybe, mayStillRun: !asUnsent, now: now)
            change(row.operation.sequence) {
                $0.operation.state = asUnsent ? .pending : .uncertain
                $0.operation.reason = .crashed
            }
        }
    }

    private mutating func endAttempt(_ sequence: Int64, sent: TransferFailure.Sent, mayStillRun: Bool, now: Timestamp) {
        change(sequence) {
            guard let last = $0.attempts.indices.last else { return }
            $0.attempts[last].ended = now
            $0.attempts[last].sent = sent
            $0.attempts[last].mayStillRun = mayStillRun
            $0.operation.lostAt = $0.attempts.last { $0.mayStillRun }?.started
            if !$0.wasSent { $0.operation.firstSentAt = nil }
        }
    }

    private static func apply(_ disposition: Disposition, to operation: inout QueuedWrite, now: Timestamp) {
        operation.state = disposition.state
        operation.reason = disposition.reason
        operation.nextAttemptAt = disposition.nextAttemptAt ?? operation.nextAttemptAt
        operation.endedAt = disposition.state.hasEnded || disposition.state == .dead ? now : nil
    }

    private mutating func map(_ sequence: Int64, _ disposition: Disposition) {
        guard disposition.state == .delivered, let id = row(sequence).operation.localID, let mapping = disposition.mapping else { return }
        mappings[id] = mapping
    }
}
