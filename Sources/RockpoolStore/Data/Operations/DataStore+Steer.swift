// Commands of a person on the outbox, each a single transaction with all its consequences (docs/outbox.md#steering *user*).
import GRDB
package import RockpoolCore

extension DataStore {
    /// Ends an operation that was not delivered, and with `withTree` its dependants too.
    /// - Parameters:
    ///   - from: the states in which the operation may be.
    ///   - withTree: false refuses when another operation needs it.
    /// - Returns: all ended operations, the named one first.
    /// - Throws: `.needed` with its dependants, `.illegal` when one of them is in another state, `.notFound`, `.unavailable`. Nothing has
    ///   changed then.
    package func giveUp(
        id: String, reason: OperationReason, from: Set<OperationState>, withTree: Bool, now: Timestamp
    ) async throws -> [QueuedWrite] {
        try await recorded {
            try await queue.commit { db in
                guard let operation = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                let dependants = try Self.dependants(of: operation.sequence, in: db)
                guard withTree || dependants.isEmpty else { throw DataStoreError.needed(by: try Self.links(dependants, in: db)) }
                let first = try Self.move(operation.sequence, to: .cancelled, reason: reason, from: from, in: db, now: now)
                return try [first]
                    + dependants.map {
                        try Self.move($0, to: .cancelled, reason: .discarded, from: OperationSteering.discard.allowedFrom, in: db, now: now)
                    }
            }
        }
    }

    /// Makes an operation due now. A refused one gets a new key.
    /// - Parameter from: the states in which it may be.
    /// - Throws: `.illegal`, `.notFound`, `.unavailable`; nothing has changed then.
    package func retry(id: String, from: Set<OperationState>, now: Timestamp) async throws -> QueuedWrite {
        try await recorded {
            try await queue.commit { db in
                guard let operation = try Self.fetch(in: db, where: "id = ?", [id]) else { throw DataStoreError.notFound(id: id) }
                return try Self.move(operation.sequence, to: .pending, reason: nil, from: from, in: db, now: now)
            }
        }
    }

    /// Makes the parked, dead and conflicted operations of a selection due now, and of a whole lane also the pending ones. An uncertain one
    /// may have taken effect and needs a decision of its own, so it is left alone.
    /// - Parameter kept: the sequences of those that keep their time.
    /// - Returns: the ids of the retried and of the uncertain operations, in their order within the lanes.
    package func retry(
        _ selection: RetrySelection, except kept: Set<Int64> = [], now: Timestamp
    ) async throws -> (retried: [String], uncertain: [String]) {
        try await recorded {
            try await queue.commit { db in
                let rows = try Row.fetchAll(
                    db,
                    sql: """
                        SELECT seq, id, state FROM op WHERE (?1 IS NULL OR lane = ?1) AND (?2 IS NULL OR upstream = ?2)
                            AND (?3 IS NULL OR reason = ?3) AND (?4 IS NULL
                                OR coalesce(ended_at, (SELECT max(ended) FROM attempt WHERE attempt.seq = op.seq), accepted_at) >= ?4)
                            AND \(OperationState.isOpen) ORDER BY place, seq
                        """,
                    arguments: [selection.lane, selection.upstream, selection.reason?.rawValue, selection.since?.milliseconds])
                var (retried, uncertain): ([String], [String]) = ([], [])
                for row in rows {
                    var columns = RowReader(row)
                    let (sequence, id): (Int64, String) = (try columns.next(), try columns.next())
                    switch try columns.word(OperationState.self) {
                    case .pending where kept.contains(sequence) || !selection.isWholeLane: break
                    case .pending, .parked, .dead, .conflicted:
                        _ = try Self.move(sequence, to: .pending, reason: nil, from: OperationSteering.retry.allowedFrom, in: db, now: now)
                        retried.append(id)
                    case .uncertain: uncertain.append(id)
                    default: break
                    }
                }
                return (retried, uncertain)
            }
        }
    }

    /// Moves one row to another state; a retried one is due now.
    private static func move(
        _ sequence: Int64, to state: OperationState, reason: OperationReason?, from: Set<OperationState>, in db: Database,
        now: Timestamp
    ) throws -> QueuedWrite {
        guard let before = try fetch(in: db, where: "seq = ?", [sequence]) else { throw DataStoreError.notFound(id: "\(sequence)") }
        let isRenewed = state == .pending && OperationSteering.renewsKey(of: before)
        try transition(
            in: db, sequence: sequence, from: before.state, to: state, reason: reason, allowed: from,
            nextAttemptAt: state == .pending ? now : nil, update: isRenewed ? renewed : .plain,
            values: isRenewed ? [newKey(now).databaseValue] : [], now: now)
        return try fetch(in: db, where: "seq = ?", [sequence]) ?? before
    }

    /// A new key, under which nothing was sent yet. The client's own key still recognises its repeated requests.
    private static let renewed = TransitionUpdate(
        "idem_key = ?, key_origin = 'proxy', key_rev = key_rev + 1, first_sent_at = NULL, sent_tick = NULL")

    private static func newKey(_ now: Timestamp) -> String {
        UUIDv7.make(now: now, random: (.random(in: 0 ... .max), .random(in: 0 ... .max)))
    }
}

/// Operations that a person retries together. At least one member is set.
package struct RetrySelection: Hashable, Sendable {
    package var lane: String?
    /// Nil selects every upstream.
    package var upstream: String?
    package var reason: OperationReason?
    /// The earliest time of the refusal.
    package var since: Timestamp?

    package init(lane: String? = nil, upstream: String? = nil, reason: OperationReason? = nil, since: Timestamp? = nil) {
        (self.lane, self.upstream, self.reason, self.since) = (lane, upstream, reason, since)
    }

    /// True if it selects everything of a lane, not only what was refused.
    package var isWholeLane: Bool { lane != nil && reason == nil && since == nil }
}
