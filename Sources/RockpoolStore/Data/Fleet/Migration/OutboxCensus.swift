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

    /// Counts in a node's own database, without what only this node of a fleet has.
    init(in db: Database) throws {
        let shared = "seq < \(HeldOperations.first)"
        let sql = """
            SELECT (SELECT count(*) FROM op WHERE \(shared)), (SELECT count(*) FROM op WHERE \(shared) AND \(OperationState.isOpen)),
                (SELECT count(body) + count(resp_body) + count(DISTINCT blob_sha) FROM op WHERE \(shared)),
                (SELECT count(client_key) FROM op WHERE \(shared)),
                (SELECT count(*) FROM attempt WHERE \(shared)) + (SELECT count(*) FROM conflict WHERE \(shared))
                    + (SELECT count(*) FROM sync_log WHERE n < \(HeldOperations.first))
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
