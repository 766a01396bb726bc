// Reading the outbox: one, some, all that are open, and how many (contract §4, §5).
import GRDB
import Logging
package import RockpoolCore

/// Which operations a list takes.
package struct OperationFilter: Hashable, Sendable {
    /// nil: those that have not ended.
    package var states: Set<OperationState>?
    package var lane: String?
    package var upstream: String?
    /// 1…1000.
    package var limit: Int
    /// `next` of the page before.
    package var cursor: Int64?

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
    /// The cursor for what follows; nil at the end.
    package var next: Int64?
}

/// One line of the sync log.
package struct LogLine: Hashable, Sendable {
    package var number: Int64
    package var at: Timestamp
    /// The operation's id; nil when its row is gone.
    package var operation: String?
    package var event: String
    package var detail: String?
}

extension DataStore {
    /// nil when there is none of that id.
    package func operation(id: String) async throws -> Operation? {
        try await reading { try Self.fetch($0, where: "id = ?", [id]) }
    }

    /// In the order they were accepted, without the bodies of requests and answers.
    package func operations(_ filter: OperationFilter = OperationFilter()) async throws -> Page<Operation> {
        let limit = min(1000, max(1, filter.limit))
        let states = filter.states ?? Set(OperationState.allCases.filter { !$0.hasEnded })
        let words = states.map { "'\($0.rawValue)'" }.sorted().joined(separator: ", ")
        return try await reading { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT \(OperationRow.lightColumns) FROM op WHERE seq > ?1 AND state IN (\(words))
                        AND (?2 IS NULL OR lane = ?2) AND (?3 IS NULL OR upstream = ?3) ORDER BY seq LIMIT ?4
                    """, arguments: [filter.cursor ?? 0, filter.lane, filter.upstream, limit + 1])
            let items = try rows.prefix(limit).map(OperationRow.operation(from:))
            return Page(items: items, next: rows.count > limit ? items.last?.sequence : nil)
        }
    }

    /// All that have not ended, in the order they were accepted, without inline bodies and answers: `lease` gives those.
    package func openOperations() async throws -> [Operation] {
        try await light("state NOT IN (\(OperationRow.endedStates)) ORDER BY seq")
    }

    /// Some of them whole, in the order they were accepted; those that are gone are left out.
    package func operations(sequences: [Int64]) async throws -> [Operation] {
        try await reading { db in
            let statement = try db.cachedStatement(sql: "SELECT \(OperationRow.columns) FROM op WHERE seq = ?")
            return try sequences.sorted().compactMap { sequence in
                try Row.fetchOne(statement, arguments: [sequence]).map(OperationRow.operation(from:))
            }
        }
    }

    /// What has ended since `moment` though an attempt of it may still run.
    package func endedInDoubt(since moment: Timestamp) async throws -> [Operation] {
        try await light(
            """
            ended_at >= \(moment.milliseconds) AND state IN (\(OperationRow.endedStates))
                AND EXISTS (SELECT 1 FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun))
            """)
    }

    /// What was delivered since `moment` about entities of declared resources: what reads must still show (outbox.md §1.5).
    package func deliveredEntities(since moment: Timestamp) async throws -> [Operation] {
        try await light("state = 'delivered' AND ended_at >= \(moment.milliseconds) AND entity_type IS NOT NULL ORDER BY ended_at, seq")
    }

    /// What was delivered within `span` of the latest delivery: what the cache may not have heard of before a crash.
    package func lastDelivered(within span: TimeSpan) async throws -> [Operation] {
        try await light(
            "state = 'delivered' AND ended_at >= (SELECT max(ended_at) FROM op WHERE ended_at IS NOT NULL) - \(span.milliseconds)")
    }

    func light(_ condition: String) async throws -> [Operation] {
        try await reading { db in
            try Row.fetchAll(db, sql: "SELECT \(OperationRow.lightColumns) FROM op WHERE \(condition)").compactMap { row in
                do {
                    return try OperationRow.operation(from: row)
                } catch {
                    // One unreadable row holds its own lane, and no other.
                    self.logger.error("an operation cannot be read: \(error)")
                    return nil
                }
            }
        }
    }

    /// How the operations of a lane stand that have not ended.
    package func standings(lane: String, upstream: String) async throws -> [LaneStanding] {
        try await reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT principal, state, min(place) FROM op WHERE lane = ? AND upstream = ?
                        AND state NOT IN (\(OperationRow.endedStates)) GROUP BY principal, state
                    """)
            return try Row.fetchAll(statement, arguments: [lane, upstream]).compactMap { row in
                var columns = RowReader(row)
                let principal: String = try columns.next()
                guard let state = try columns.word(OperationState.self) else { return nil }
                return LaneStanding(principal: principal.isEmpty ? nil : principal, state: state, firstPlace: try columns.next())
            }
        }
    }

    /// Whether one of the operations, or an earlier one of the principal's group of this name, has not ended.
    package func isAnythingOpen(ids: [String], group: String?, upstream: String, principal: String?) async throws -> Bool {
        guard !ids.isEmpty || group != nil else { return false }
        return try await reading { db in
            let open = "state NOT IN (\(OperationRow.endedStates))"
            for id in ids where try Bool.fetchOne(db, sql: "SELECT \(open) FROM op WHERE id = ?", arguments: [id]) ?? true { return true }
            guard let group else { return false }
            let found = "SELECT EXISTS (SELECT 1 FROM op WHERE upstream = ? AND group_name = ? AND principal = ? AND \(open))"
            return try Bool.fetchOne(db, sql: found, arguments: [upstream, group, principal ?? ""]) ?? false
        }
    }

    /// Every sending of an operation so far.
    package func attempts(of operation: Operation) async throws -> [AttemptRecord] {
        try await reading { db in
            try Row.fetchAll(
                db, sql: "SELECT \(AttemptRecord.columns) FROM attempt WHERE seq = ? ORDER BY n", arguments: [operation.sequence]
            ).map(AttemptRecord.init(row:))
        }
    }

    /// How many are in each state; absent ones are none.
    package func counts() async throws -> [OperationState: Int] {
        try await reading { db in
            try Row.fetchAll(db, sql: "SELECT state, count(*) FROM op GROUP BY state").reduce(into: [:]) { counts, row in
                var columns = RowReader(row)
                guard let state = try columns.word(OperationState.self) else { return }
                counts[state] = try columns.next(Int.self)
            }
        }
    }

    /// When the oldest pending operation was accepted; nil when none is pending.
    package func oldestPending() async throws -> Timestamp? {
        try await reading { db in
            try Int64.fetchOne(db, sql: "SELECT min(accepted_at) FROM op WHERE state = 'pending'").map(Timestamp.init(milliseconds:))
        }
    }

    /// Operations delivered since the store was made, those purged since included.
    package func deliveredTotal() async throws -> Int {
        try await reading { try Int.fetchOne($0, sql: "SELECT value FROM total WHERE name = 'delivered'") ?? 0 }
    }

    /// The newest lines of the log first.
    /// - Parameter before: `number` of the last line of the page before; nil for the first page.
    package func log(before: Int64? = nil, limit: Int = 100) async throws -> [LogLine] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT n, at, id, event, detail FROM sync_log LEFT JOIN op USING (seq) WHERE n < ? ORDER BY n DESC LIMIT ?
                    """, arguments: [before ?? .max, min(1000, max(1, limit))])
            return try rows.map { row in
                var columns = RowReader(row)
                return LogLine(
                    number: try columns.next(), at: Timestamp(milliseconds: try columns.next()), operation: try columns.nextIfAny(),
                    event: try columns.next(), detail: try columns.nextIfAny())
            }
        }
    }
}
