// The outbox's log, read in order by those who announce its events (docs/guide/operating.md#alarms).
import GRDB
package import RockpoolCore

/// A line of the log with the position of its operation.
package struct JournalLine: Hashable, Sendable {
    /// Grows with every line.
    package var number: Int64
    package var at: Timestamp
    package var sequence: Int64
    /// The name of a state, or of another event.
    package var event: String
}

extension DataStore {
    /// The row of `cursor` that holds the position. No scope of a pull begins like it: a name of an upstream holds no colon.
    private static let journal = "journal:notices"

    /// Returns the lines after `number`, the oldest first, at most `limit`. Those of operations that this node holds have no place yet.
    package func journal(after number: Int64, limit: Int) async throws -> [JournalLine] {
        try await reading { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: "SELECT n, at, seq, event FROM sync_log WHERE n > ? AND n < ? AND seq IS NOT NULL ORDER BY n LIMIT ?"),
                arguments: [number, HeldOperations.first, limit]
            ).map { row in
                var columns = RowReader(row)
                return JournalLine(
                    number: try columns.next(), at: Timestamp(milliseconds: try columns.next()), sequence: try columns.next(),
                    event: try columns.next())
            }
        }
    }

    /// Returns the last line that was announced, and the last one that there is; the first is nil before the first announcement.
    package func journalPosition() async throws -> (announced: Int64?, last: Int64) {
        try await reading { db in
            let text = try String.fetchOne(db, sql: "SELECT value FROM cursor WHERE scope = ?", arguments: [Self.journal])
            return (
                text.flatMap { Int64($0) },
                try Int64.fetchOne(db, sql: "SELECT max(n) FROM sync_log WHERE n < ?", arguments: [HeldOperations.first]) ?? 0
            )
        }
    }

    /// Records the last line that was announced.
    package func setJournalPosition(_ number: Int64) async throws {
        try await recorded {
            try await queue.commit(weight: 512, scope: .own) { db in
                try db.execute(
                    sql: "INSERT INTO cursor (scope, value) VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET value = excluded.value",
                    arguments: [Self.journal, "\(number)"])
            }
        }
    }

    /// Returns the oldest pending operation that is no message of Rockpool's own; nil without one.
    package func oldestPendingWrite() async throws -> QueuedWrite? {
        let own = ReceiverKind.allCases.map { "upstream NOT LIKE '\($0.rawValue):%'" }.joined(separator: " AND ")
        return try await reading { db in
            let first = "SELECT seq FROM op WHERE state = 'pending' AND \(own) ORDER BY accepted_at LIMIT 1"
            return try Self.fetch(in: db, where: "seq = (\(first))", [])
        }
    }

    /// Returns the number of open operations of each named upstream, by state.
    package func openCounts(ofEach upstreams: [String]) async throws -> [(upstream: String, counts: [OperationState: Int])] {
        try await reading { db in
            var counts: [String: [OperationState: Int]] = [:]
            let rows = try Row.fetchAll(
                db,
                sql: "SELECT upstream, state, count(*) FROM op WHERE \(OperationState.isOpen) GROUP BY upstream, state")
            for row in rows {
                var columns = RowReader(row)
                let upstream = try columns.next(String.self)
                guard let state = try columns.word(OperationState.self) else { continue }
                counts[upstream, default: [:]][state] = try columns.next(Int.self)
            }
            return upstreams.map { ($0, counts[$0] ?? [:]) }
        }
    }

    /// Returns the number of open operations of an upstream.
    package func openCount(upstream: String) async throws -> Int {
        try await reading { db in
            try Int.fetchOne(
                db.cachedStatement(
                    sql: "SELECT count(*) FROM op WHERE upstream = ? AND \(OperationState.isOpen)"),
                arguments: [upstream]) ?? 0
        }
    }
}

/// One line of the sync log.
package struct LogLine: Hashable, Sendable {
    package var number: Int64
    package var at: Timestamp
    /// The operation's id; nil when its row was deleted.
    package var operation: String?
    package var method: String?
    /// The operation's URL as its client sent it, secrets included.
    package var url: String?
    /// The name of the principal that sent the operation; nil without a credential.
    package var principal: String?
    /// The program that sent it, as it calls itself.
    package var userAgent: String?
    package var event: String
    package var detail: String?
}
