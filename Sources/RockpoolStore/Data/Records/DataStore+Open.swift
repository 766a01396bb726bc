// Reads of all open operations, with what replay and reads keep of each in memory (docs/outbox.md#lanes, docs/outbox.md#reads).
import FoundationEssentials
import GRDB
import HTTPTypes
import Logging
package import RockpoolCore

extension DataStore {
    /// Reduces the operations that have not ended, in the order they were accepted, each with the id of its entity and its target. Nothing
    /// but the summary of one at a time is read: an outbox may hold a hundred thousand writes.
    /// - Parameter ofResources: true for those to declared resources only.
    package func reduceOpen<Total: Sendable>(
        into initial: Total, ofResources: Bool = false,
        _ take: @escaping @Sendable (inout Total, OperationSummary, _ entityID: String?, _ target: String) -> Void
    ) async throws -> Total {
        let (read, whole) = try await reading { db -> (Total, [Int64]) in
            var (result, whole, texts) = (initial, [Int64](), SharedTexts())
            let condition = OperationState.isOpen + (ofResources ? " AND entity_type IS NOT NULL" : "")
            let sql = "SELECT \(Self.summaryColumns) FROM op WHERE \(condition) ORDER BY seq"
            _ = try db.cachedStatement(sql: sql).all([], in: db) { columns in
                do {
                    var (summary, entityID) = try Self.summary(from: &columns)
                    let target: String = try columns.next()
                    // Only its fields say whether its signature ends then.
                    guard summary.expiresAt == nil else { return whole.append(summary.sequence) }
                    summary.share(&texts)
                    take(&result, summary, entityID, target)
                } catch {
                    // An unreadable row blocks only its own lane.
                    self.logger.error("an operation cannot be read: \(error)")
                }
            }
            return (result, whole)
        }
        var result = read
        for operation in try await operations(sequences: whole) {
            take(&result, OperationSummary(operation), operation.entityID, operation.request.target)
        }
        return result
    }

    /// Returns the origins of the open operations, by the name of their upstream.
    package func openOrigins() async throws -> [(upstream: String, origin: OriginAddress)] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT DISTINCT upstream, origin FROM op WHERE \(OperationState.isOpen)")
            return try rows.map { row -> (upstream: String, origin: OriginAddress) in
                var columns = RowReader(row)
                return (upstream: try columns.next(), origin: try columns.origin())
            }
        }
    }

    /// Reads the open writes to paths without a declared resource, one after the other in the order they were accepted, with what reads of
    /// files need of them (docs/outbox.md#files-and-collections).
    package func eachOpenFile(_ take: @escaping @Sendable (QueuedWrite) -> Void) async throws {
        try await reading { db in
            let columns = OperationRow.ofFiles.map(\.sql).joined(separator: ", ")
            let sql = "SELECT \(columns) FROM op WHERE \(OperationState.isOpen) AND entity_type IS NULL ORDER BY seq"
            _ = try db.cachedStatement(sql: sql).all([], in: db) { columns in
                do { take(try OperationRow.operation(from: &columns, of: OperationRow.ofFiles)) } catch {
                    // An unreadable row blocks only its own lane.
                    self.logger.error("an operation cannot be read: \(error)")
                }
            }
        }
    }

    // MARK: - What holds an operation back

    /// Returns the open operation that holds back one, the earliest if there are several; nil when it may be sent. It need not be stored, and
    /// its dependencies are not considered.
    package func blocker(of operation: OperationSummary, in lane: String, rules: LaneRules) async throws -> OperationLink? {
        if empty.isKnown { return nil }
        let mark = empty.mark
        return try await reading { db in
            let held = try Self.blocker(of: operation, in: lane, rules: rules, db: db)
            if held == nil, try !Self.holdsOpen(in: db) { self.empty.note(at: mark) }
            return try held.flatMap { try Self.links([$0.sequence], in: db).first }
        }
    }

    /// The same for an operation that is stored, within a read.
    ///
    /// The first operations of the lane nearly always decide, so few are read at first: a lane may hold a hundred thousand. One that has more
    /// than the last number of operations that may hold others counts as held by the last of these.
    static func blocker(of operation: OperationSummary, in lane: String, rules: LaneRules, db: Database) throws -> OperationSummary? {
        let holding = Self.holding(before: operation, rules: rules)
        for limit in [4, 64, 1024] {
            let sql = "SELECT \(Self.summaryColumns) FROM op WHERE lane = ?1 AND upstream = ?2 AND place < ?3 AND \(OperationState.isOpen)"
            let values = [lane.databaseValue, operation.upstream.databaseValue, operation.place.databaseValue, limit.databaseValue]
            let before = try summaries("\(sql)\(holding) ORDER BY place LIMIT ?4", values, rules: rules, in: db)
            let needed = Set(before.flatMap(\.needs)).subtracting(before.map(\.sequence))
            let others =
                try needed.isEmpty
                ? []
                : summaries(
                    "SELECT \(Self.summaryColumns) FROM op WHERE seq IN (SELECT value FROM json_each(?1)) AND \(OperationState.isOpen)",
                    ["[\(needed.map(String.init).joined(separator: ","))]".databaseValue], rules: rules, in: db)
            var order = ReplayOrder(before + others, context: rules.context, isProved: rules.isProved, now: rules.now)
            if let blocker = order.blocker(of: operation) { return blocker }
            if before.count < limit { return nil }
            if limit == 1024 { return before.last }
        }
        return nil
    }

    /// The condition that leaves out what holds nobody whatever else its row says, by the rule of `LaneReach`: a lane may have thousands of
    /// them.
    private static func holding(before operation: OperationSummary, rules: LaneRules) -> String {
        if rules.routes?.strictRoutes[operation.upstream] != nil { return "" }
        let left = operation.isTelemetry || rules.resendsPosts(of: operation.upstream) ? "'conflicted'" : "'conflicted', 'uncertain'"
        return " AND state <> 'dead' AND NOT (method = 'POST' AND local_id IS NULL AND entity_type IS NULL AND state IN (\(left)))"
    }

    private static func summaries(_ sql: String, _ values: [DatabaseValue], rules: LaneRules, in db: Database) throws -> [OperationSummary]
    {
        try db.cachedStatement(sql: sql).all(values, in: db) { columns in
            var (summary, _) = try Self.summary(from: &columns)
            let target: String = try columns.next()
            rules.routes?.complete(&summary, target: target)
            return summary
        }
    }

    private static func holdsOpen(in db: Database) throws -> Bool {
        try Bool.fetchOne(db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM op WHERE \(OperationState.isOpen))")) ?? true
    }

    private static let summaryColumns = """
        seq, place, id, state, reason, method, entity_type, lane, upstream, priority, principal, accepted_at, first_sent_at, next_at,
        expires_at, probes, entity_id, \(OperationRow.needs), entity, local_id IS NOT NULL, iif(principal = '', headers, NULL),
        (SELECT max(started) FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun)), target
        """

    private static func summary(from columns: inout RowReader) throws(UnreadableRow) -> (OperationSummary, entityID: String?) {
        let (sequence, place): (Int64, Int64) = (try columns.next(), try columns.next())
        let id: String = try columns.next()
        let state: OperationState = try columns.nextWord()
        let reason: OperationReason? = try columns.word()
        let method = try columns.method()
        let collection: String? = try columns.nextIfAny()
        let (lane, upstream, priority): (String, String, Int) = (try columns.next(), try columns.next(), try columns.next())
        let principal = try columns.principal()
        let (acceptedAt, firstSentAt, dueAt) = (try columns.moment(), try columns.momentIfAny(), try columns.moment())
        let (expiresAt, probes): (Timestamp?, Int) = (try columns.momentIfAny(), try columns.next())
        let (entityID, needs): (String?, String?) = (try columns.nextIfAny(), try columns.nextIfAny())
        let (entity, isCreate): (String?, Bool) = (try columns.nextIfAny(), try columns.next())
        let fields: Data? = try columns.nextIfAny()
        var summary = OperationSummary(
            sequence: sequence, place: place, id: id, state: state, reason: reason, method: method, lane: lane, upstream: upstream,
            entity: entity, priority: priority, principal: principal, acceptedAt: acceptedAt, firstSentAt: firstSentAt,
            lostAt: try columns.momentIfAny(), nextAttemptAt: dueAt, expiresAt: expiresAt, probes: probes)
        summary.collection = collection
        (summary.needs, summary.follows) = OperationRow.needs(in: needs)
        let address = fields.flatMap { FieldCodec.decode($0)?[.rockpoolClient] }
        summary.order(in: lane, entity: entity, isCreate: isCreate, address: address)
        return (summary, entityID)
    }

    // MARK: - Standing
    // The relations of operations to others, read from their lanes and dependencies (docs/outbox.md#lanes, docs/outbox.md#waiting).

    /// Returns the relations by sequence; deleted operations are absent.
    package func standings(of operations: [QueuedWrite], rules: LaneRules) async throws -> [Int64: OperationRelations] {
        try await reading { db in
            try operations.reduce(into: [:]) { standings, operation in
                standings[operation.sequence] = try Self.standing(of: operation, rules: rules, in: db)
            }
        }
    }

    /// True if the create that assigned a local id was given up before the upstream had the item, so that the id will never be mapped.
    package func isGivenUp(_ id: LocalID) async throws -> Bool {
        try await reading { db in
            try Bool.fetchOne(
                db,
                sql: """
                    SELECT op.state = 'cancelled' FROM id_map JOIN op ON op.seq = id_map.created_by
                        WHERE id_map.local_id = ? AND id_map.server_id IS NULL
                    """,
                arguments: [id.text]) ?? false
        }
    }

    /// True if an unsent operation waits behind the row of `op` in its lane, or an open one needs it.
    static let isAwaited = """
        (\(OperationState.isOpen("op")) AND EXISTS (SELECT 1 FROM op AS later WHERE later.lane = op.lane AND later.upstream = op.upstream
            AND later.place > op.place AND later.principal IS op.principal AND later.state = 'pending' AND \(OperationState.isOpen("later")))
        OR EXISTS (SELECT 1 FROM op_dep JOIN op AS later ON later.seq = op_dep.seq WHERE op_dep.needs = op.seq
            AND (later.state = 'pending' OR op_dep.kind NOT IN ('group', 'collection')) AND \(OperationState.isOpen("later"))))
        """

    private static func standing(of operation: QueuedWrite, rules: LaneRules, in db: Database) throws -> OperationRelations? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT (SELECT id FROM op AS next WHERE next.seq = op.superseded_by), (SELECT id FROM op AS old WHERE old.seq = op.fixes),
                    \(isAwaited)
                FROM op WHERE seq = ?
                """)
        guard let row = try Row.fetchOne(statement, arguments: [operation.sequence]) else { return nil }
        var columns = RowReader(row)
        var standing = OperationRelations(
            supersededBy: try columns.nextIfAny(), fixes: try columns.nextIfAny(), isAwaited: try columns.next())
        if operation.state == .pending {
            var summary = rules.routes?.summary(of: operation) ?? OperationSummary(operation)
            summary.needs = []
            let head = try blocker(of: summary, in: operation.lane, rules: rules, db: db)
            if let head { standing.ahead = try links([head.sequence], in: db).first }
        }
        let needs = try Int64.fetchAll(
            try db.cachedStatement(sql: "SELECT needs FROM op_dep WHERE seq = ? ORDER BY needs"), arguments: [operation.sequence])
        if !needs.isEmpty { standing.dependsOn = try links(needs, in: db) }
        return standing
    }
}
