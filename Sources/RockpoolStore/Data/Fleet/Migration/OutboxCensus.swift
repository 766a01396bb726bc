// What an outbox has, in numbers: the same in the database of a fleet and in a replica of it (docs/fleet.md#joining-and-leaving).
import GRDB
import RockpoolCore

/// The rows of an outbox by kind.
package struct OutboxCensus: Hashable, Sendable, Codable {
    /// Operations in every state, and those among them that have not ended.
    package var operations: Int64
    package var open: Int64
    /// Bodies of requests and responses.
    package var bodies: Int64
    /// Keys of clients, each of which names one operation.
    package var keys: Int64
    /// Attempts, conflicts and lines of the log.
    package var history: Int64

    /// Counts in a node's own database.
    init(in db: Database) throws {
        let sql = """
            SELECT (SELECT count(*) FROM op), (SELECT count(*) FROM op WHERE \(OperationState.isOpen)),
                (SELECT count(body) + count(resp_body) FROM op) + (SELECT count(*) FROM blob WHERE refs > 0),
                (SELECT count(client_key) FROM op),
                (SELECT count(*) FROM attempt) + (SELECT count(*) FROM conflict) + (SELECT count(*) FROM sync_log)
            """
        let row = try Row.fetchOne(db, sql: sql)
        self.init((0..<5).map { row?[$0] ?? 0 })
    }

    /// Counts in the database of the fleet, within its transaction.
    init(at log: SharedLog) throws {
        // A body that was taken away is a row with NULL: its type is the byte after its name.
        let row = try log.run(
            """
            SELECT count(*) FILTER (WHERE tbl = 'op' AND part = 0),
                count(*) FILTER (WHERE tbl = 'op' AND part = 0 AND \(OperationState.isOpen)),
                count(*) FILTER (WHERE tbl = 'blob' OR tbl = 'op' AND part > 0 AND get_byte(data, 1 + get_byte(data, 0)) <> 0),
                count(client_key), count(*) FILTER (WHERE tbl IN ('attempt', 'conflict', 'sync_log'))
                FROM rockpool.item WHERE data IS NOT NULL
            """
        ).first
        self.init((row ?? []).map { ($0 ?? []).reduce(0) { $0 << 8 | Int64($1) } })
    }

    private init(_ counts: [Int64]) {
        func count(_ place: Int) -> Int64 { place < counts.count ? counts[place] : 0 }
        (operations, open, bodies, keys, history) = (count(0), count(1), count(2), count(3), count(4))
    }
}
