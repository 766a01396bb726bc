// Reads of the outbox: single operations, lists, all open ones, counts (docs/reference/admin-api.md#operations).
import FoundationEssentials
import GRDB
import HTTPTypes
import Logging
package import RockpoolCore

extension DataStore {
    /// Returns nil when the id is unknown.
    package func operation(id: String) async throws -> QueuedWrite? {
        try await reading { try Self.fetch(in: $0, where: "id = ?", [id]) }
    }

    /// Returns the ids of the operations or conflicts that begin or end with `part`, the newest first.
    /// - Parameter limit: the maximum number of ids.
    package func ids(_ kind: IdentifiedKind, matching part: String, limit: Int) async throws -> [String] {
        guard part.utf8.allSatisfy({ $0 == UInt8(ascii: "-") || Character(UnicodeScalar($0)).isHexDigit }) else { return [] }
        return try await reading { db in
            try String.fetchAll(
                db, sql: "SELECT id FROM \(kind.rawValue) WHERE id LIKE ?1 || '%' OR id LIKE '%' || ?1 ORDER BY id DESC LIMIT ?2",
                arguments: [part, limit])
        }
    }

    /// What an id names.
    package enum IdentifiedKind: String, Sendable {
        case operation = "op"
        case conflict
    }

    /// Returns operations in the order they were accepted, without the bodies of requests and responses.
    package func operations(_ filter: OperationFilter = OperationFilter()) async throws -> Page<QueuedWrite> {
        let limit = min(1000, max(1, filter.limit))
        let (condition, arguments) = condition(of: filter)
        return try await reading { db in
            let rows = try Row.fetchAll(
                db,
                sql: "SELECT \(OperationRow.lightColumns) FROM op WHERE \(condition) ORDER BY seq LIMIT ? OFFSET ?",
                arguments: arguments + [limit + 1, max(0, filter.offset)])
            let items = try rows.prefix(limit).map(OperationRow.operation(from:))
            return Page(items: items, next: rows.count > limit ? items.last?.sequence : nil)
        }
    }

    /// Returns the operation in a state that was accepted last, without bodies; nil if there is none.
    package func last(in state: OperationState) async throws -> QueuedWrite? {
        try await reading { db in
            try Row.fetchOne(
                try db.cachedStatement(sql: "SELECT \(OperationRow.lightColumns) FROM op WHERE state = ? ORDER BY seq DESC LIMIT 1"),
                arguments: [state.rawValue]
            ).map(OperationRow.operation(from:))
        }
    }

    /// Returns the number of operations that a filter selects, on all its pages.
    package func count(of filter: OperationFilter) async throws -> Int {
        var filter = filter
        filter.cursor = nil
        let (condition, arguments) = condition(of: filter)
        return try await reading { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM op WHERE \(condition)", arguments: arguments) ?? 0
        }
    }

    private func condition(of filter: OperationFilter) -> (sql: String, arguments: StatementArguments) {
        let states = filter.states ?? Set(OperationState.allCases.filter { !$0.hasEnded })
        let words = states.map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ")
        let sql = """
            seq > ?1 AND state IN (\(words)) AND (?2 IS NULL OR lane = ?2) AND (?3 IS NULL OR upstream = ?3)
            AND (?4 IS NULL OR method = ?4) AND (?5 IS NULL OR instr(target, ?5) > 0) AND (?6 IS NULL OR accepted_at < ?6)
            """
        return (
            sql,
            [
                filter.cursor ?? 0, filter.lane, filter.upstream, filter.method, filter.path,
                filter.olderThan.map { (self.clock() - $0).milliseconds },
            ]
        )
    }

    /// Returns all operations that have not ended, in the order they were accepted, without inline bodies and results, which `lease`
    /// returns.
    package func openOperations() async throws -> [QueuedWrite] {
        try await light("\(OperationState.isOpen) ORDER BY seq")
    }

    /// Returns some operations with their bodies, in the order they were accepted; deleted ones are left out.
    package func operations(sequences: [Int64]) async throws -> [QueuedWrite] {
        try await reading { db in
            let statement = try db.cachedStatement(sql: "SELECT \(OperationRow.columns) FROM op WHERE seq = ?")
            return try sequences.sorted().compactMap { sequence in
                try statement.first([sequence.databaseValue], in: db) { try OperationRow.operation(from: &$0) }
            }
        }
    }

    /// Returns operations that ended since `moment` while an attempt may still run.
    package func endedInDoubt(since moment: Timestamp) async throws -> [QueuedWrite] {
        try await light(
            """
            ended_at >= \(moment.milliseconds) AND state IN (\(OperationState.endedList))
                AND EXISTS (SELECT 1 FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun))
            """)
    }

    /// Returns operations on entities of declared resources delivered since `moment`: reads must still show their effect
    /// (docs/outbox.md#reads).
    package func deliveredEntities(since moment: Timestamp) async throws -> [QueuedWrite] {
        try await light("state = 'delivered' AND ended_at >= \(moment.milliseconds) AND entity_type IS NOT NULL ORDER BY ended_tick, seq")
    }

    /// Returns writes to paths without a declared resource delivered since `moment` (docs/outbox.md#files-and-collections).
    package func deliveredFiles(since moment: Timestamp) async throws -> [QueuedWrite] {
        try await light(
            """
            state = 'delivered' AND ended_at >= \(moment.milliseconds) AND entity_type IS NULL
                AND method IN ('PUT', 'DELETE', 'MKCOL', 'MOVE', 'COPY') ORDER BY ended_tick, seq
            """)
    }

    /// Returns operations delivered within `span` of the latest delivery: a crash may have kept the cache from processing them.
    package func lastDelivered(within span: TimeSpan) async throws -> [QueuedWrite] {
        let latest = "SELECT max(ended_at) FROM op WHERE state = 'delivered' AND ended_at IS NOT NULL"
        return try await light("state = 'delivered' AND ended_at >= (\(latest)) - \(span.milliseconds)")
    }

    /// The same within a transaction; rows that cannot be read are left out.
    static func light(_ condition: String, in db: Database) throws -> [QueuedWrite] {
        try Row.fetchAll(db, sql: "SELECT \(OperationRow.lightColumns) FROM op WHERE \(condition) ORDER BY seq")
            .compactMap { try? OperationRow.operation(from: $0) }
    }

    func light(_ condition: String) async throws -> [QueuedWrite] {
        try await reading { db in
            try Row.fetchAll(db, sql: "SELECT \(OperationRow.lightColumns) FROM op WHERE \(condition)").compactMap { row in
                do {
                    return try OperationRow.operation(from: row)
                } catch {
                    // An unreadable row blocks only its own lane.
                    self.logger.error("an operation cannot be read: \(error)")
                    return nil
                }
            }
        }
    }

    /// Returns true if one of the operations is unknown or has not ended, or one of the principal's group of this name keeps its order.
    package func isAnythingOpen(ids: [String], group: String?, upstream: String, principal: String?) async throws -> Bool {
        guard !ids.isEmpty || group != nil else { return false }
        return try await reading { db in
            let open = OperationState.isOpen
            for id in ids where try Bool.fetchOne(db, sql: "SELECT \(open) FROM op WHERE id = ?", arguments: [id]) ?? true { return true }
            guard let group else { return false }
            let found =
                "SELECT EXISTS (SELECT 1 FROM op WHERE upstream = ? AND group_name = ? AND principal = ? AND \(OperationState.keepsOrder))"
            return try Bool.fetchOne(db, sql: found, arguments: [upstream, group, principal ?? ""]) ?? false
        }
    }

    /// Returns the ids of the dead writes to the entity of `new`, of the same principal, that a new state of the entity makes pointless: no
    /// creates, no actions, and not the same write under its own key.
    package func deadWrites(replacedBy new: QueuedWriteDraft) async throws -> [String] {
        guard let entity = new.entity else { return [] }
        return try await reading { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT id FROM op WHERE upstream = ?1 AND entity = ?2 AND principal = ?3 AND state = 'dead' AND method <> 'POST'
                        AND (?4 IS NULL OR client_key IS NOT ?4) ORDER BY seq
                    """,
                arguments: [new.upstream, entity, new.principal ?? "", new.keyIsClients ? ClientKey(new).text : nil])
        }
    }

    /// Returns the last open write of the same principal that changes the entity of a new one; nil without one.
    package func lastOpenChange(before new: QueuedWriteDraft) async throws -> QueuedWrite? {
        guard let entity = new.entity else { return nil }
        let sequence = try await reading { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT max(seq) FROM op WHERE upstream = ?1 AND entity = ?2 AND principal = ?3 AND \(OperationState.isOpen)
                        AND method IN ('PUT', 'PATCH', 'DELETE')
                    """,
                arguments: [new.upstream, entity, new.principal ?? ""])
        }
        guard let sequence else { return nil }
        return try await operations(sequences: [sequence]).first
    }

    /// True if no operation is dead, in conflict, or open and about a whole collection.
    package func knowsNothingRare() async throws -> Bool {
        if rare.areAbsent { return true }
        guard rare.mayLook else { return false }
        try await reading { try self.rare.look(in: $0) }
        return rare.areAbsent
    }

    /// Returns true if a write must wait for open ones of its principal to the same collection, or to its members.
    package func isCollectionOpen(for new: QueuedWriteDraft) async throws -> Bool {
        guard let collection = new.collection, !empty.isKnown else { return false }
        if let below = new.entitiesBelow {
            let isOpen = try await reading { db in
                let statement = try db.cachedStatement(
                    sql: "SELECT EXISTS (\(QueuedWriteDraft.openBelow) AND \(OperationState.keepsOrder))")
                return try Bool.fetchOne(
                    statement, arguments: [new.upstream, below.from, below.to, new.principal ?? "", Int64.max]) ?? false
            }
            if isOpen { return true }
        }
        let needsCreate = try await reading { db in
            let creates = try db.cachedStatement(sql: "SELECT EXISTS (\(QueuedWriteDraft.openCreates))")
            if try Bool.fetchOne(creates, arguments: [new.upstream, new.itemsOnPath, Int64.max]) == true { return true }
            guard new.mayAddressNewItem else { return false }
            let last = try db.cachedStatement(sql: QueuedWriteDraft.lastCreate)
            return try Int64.fetchOne(
                last, arguments: [new.upstream, collection, new.principal ?? "", Int64.max, true, new.request.target]) != nil
        }
        if needsCreate { return true }
        if new.entityID != nil, try await knowsNothingRare() { return false }
        return try await reading { db in
            let statement = try db.cachedStatement(
                sql: "SELECT EXISTS (\(QueuedWriteDraft.openOfCollection(isMember: new.entityID != nil)) AND \(OperationState.keepsOrder))")
            return try Bool.fetchOne(statement, arguments: [new.upstream, collection, new.principal ?? "", Int64.max]) ?? false
        }
    }

    /// Returns every attempt of an operation so far.
    package func attempts(of operation: QueuedWrite) async throws -> [AttemptRecord] {
        try await reading { db in
            try Row.fetchAll(
                db, sql: "SELECT \(AttemptRecord.columns) FROM attempt WHERE seq = ? ORDER BY n", arguments: [operation.sequence]
            ).map(AttemptRecord.init(row:))
        }
    }

    /// Returns the number of operations in each state; an absent state has none. An operation whose conflict is not examined yet, so that
    /// no conflict is listed, counts as in flight.
    package func counts() async throws -> [OperationState: Int] {
        try await reading { db in
            var counts: [OperationState: Int] = [:]
            for row in try Row.fetchAll(db, sql: "SELECT state, count(*) FROM op GROUP BY state") {
                var columns = RowReader(row)
                guard let state = try columns.word(OperationState.self) else { continue }
                counts[state] = try columns.next(Int.self)
            }
            guard let conflicted = counts[.conflicted] else { return counts }
            let listed = "SELECT count(DISTINCT seq) FROM conflict WHERE closed IS NULL"
            let known = min(conflicted, try Int.fetchOne(db, sql: listed) ?? 0)
            counts[.conflicted] = known == 0 ? nil : known
            if conflicted > known { counts[.inflight, default: 0] += conflicted - known }
            return counts
        }
    }

    /// Returns the time at which the oldest pending operation was accepted; nil when none is pending.
    package func oldestPending() async throws -> Timestamp? {
        try await reading { db in
            // The first of the index: each question for the statistics would look at all of them otherwise.
            try Int64.fetchOne(db.cachedStatement(sql: "SELECT accepted_at FROM op WHERE state = 'pending' ORDER BY seq LIMIT 1"))
                .map(Timestamp.init(milliseconds:))
        }
    }

    /// Returns the number of operations delivered since the store was created, including those purged since.
    package func deliveredTotal() async throws -> Int {
        try await reading { Int(try Self.delivered(in: $0)) }
    }

    static func delivered(in db: Database) throws -> Int64 {
        try Int64.fetchOne(db.cachedStatement(sql: "SELECT value FROM total WHERE name = 'delivered'")) ?? 0
    }

    /// Returns lines of the log, the newest first.
    /// - Parameter before: `number` of the last line of the previous page; nil for the first page.
    package func log(before: Int64? = nil, limit: Int = 100) async throws -> [LogLine] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT n, at, id, method, origin || target, nullif(principal, ''), headers, event, detail
                    FROM sync_log LEFT JOIN op USING (seq) WHERE n < ? ORDER BY n DESC LIMIT ?
                    """, arguments: [before ?? .max, min(1000, max(1, limit))])
            return try rows.map { row in
                var columns = RowReader(row)
                return LogLine(
                    number: try columns.next(), at: Timestamp(milliseconds: try columns.next()), operation: try columns.nextIfAny(),
                    method: try columns.nextIfAny(), url: try columns.nextIfAny(), principal: try columns.nextIfAny(),
                    userAgent: try columns.nextIfAny(Data.self).flatMap(FieldCodec.decode)?[.userAgent], event: try columns.next(),
                    detail: try columns.nextIfAny())
            }
        }
    }
}

/// The selection of a list of operations.
package struct OperationFilter: Hashable, Sendable {
    /// nil: the states that have not ended.
    package var states: Set<OperationState>?
    package var lane: String?
    package var upstream: String?
    package var method: String?
    /// A part of the request's target.
    package var path: String?
    /// Only operations that were accepted longer ago.
    package var olderThan: TimeSpan?
    /// 1…1000.
    package var limit: Int
    /// `next` of the previous page.
    package var cursor: Int64?
    /// The number of selected operations to skip, for a jump to a page.
    package var offset = 0

    package init(
        states: Set<OperationState>? = nil, lane: String? = nil, upstream: String? = nil, limit: Int = 100, cursor: Int64? = nil
    ) {
        self.states = states
        self.lane = lane
        self.upstream = upstream
        self.limit = limit
        self.cursor = cursor
    }
}

/// One page of a list.
package struct Page<Item: Sendable>: Sendable {
    package var items: [Item]
    /// The cursor of the next page; nil at the end.
    package var next: Int64?
}
