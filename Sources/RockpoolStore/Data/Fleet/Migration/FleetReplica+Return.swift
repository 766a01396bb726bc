// A node that has left its fleet by a restart, and comes back (docs/fleet.md#joining-and-leaving).
import GRDB
import RockpoolCore

extension FleetReplica {
    /// Notes in an outbox that leaves its fleet where that was.
    static func noteLeaving(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE IF NOT EXISTS fleet_left (
                    id INTEGER PRIMARY KEY CHECK (id = 1), node TEXT NOT NULL, position INTEGER NOT NULL
                ) STRICT;
                INSERT INTO fleet_left SELECT id, node, position FROM fleet_state WHERE position > 0
                    ON CONFLICT (id) DO UPDATE SET node = excluded.node, position = excluded.position
                """)
    }

    /// The position at which this node has left the fleet that it comes back to now, with an outbox that is newer; nil if it joins.
    /// - Throws: `SharedLog.Absence` when others have used the fleet's outbox since: there are two now.
    func positionLeft(in db: Database) throws -> Int64? {
        guard try db.tableExists("fleet_left"), let left = try Row.fetchOne(db, sql: "SELECT node, position FROM fleet_left")
        else { return nil }
        let (former, position): (String, Int64) = (left[0], left[1])
        let rows = try log.ask(
            """
            SELECT (SELECT count(*) FROM rockpool.node WHERE id = $1), (SELECT coalesce(max(n), 0) FROM rockpool.item),
                (SELECT count(*) FROM rockpool.meta WHERE name = 'returned' AND value = $2)
            """, [.text(former), .text(node)])
        let facts = (rows.first ?? []).map { ($0 ?? []).reduce(Int64(0)) { $0 << 8 | Int64($1) } }
        // Unknown there, empty, or the fleet has this outbox already.
        guard facts.count == 3, facts[0] > 0, facts[1] > 0, facts[2] == 0 else { return nil }
        guard facts[1] == position else { throw wentOn() }
        return position
    }

    /// The fleet has gone on without this node, which has gone on as well.
    func wentOn() -> SharedLog.Absence {
        let absence = SharedLog.Absence.ended(
            "others have used its outbox since this node left it: stop it, run rockpool fleet rejoin, and start it")
        log.offline(absence)
        return absence
    }

    /// Puts this node's outbox in the place of the fleet's.
    func replace(in db: Database) throws {
        do { try empty() } catch DataStoreError.unavailable(let detail) {
            log.offline(.away(detail))
            throw SharedLog.Absence.away(detail)
        }
    }

    /// Empties the shared database, within its transaction. Nodes that had read it stay out afterwards.
    /// - Throws: `.unavailable` while another node is there, or has something that is not in the database.
    func empty() throws {
        let others = try log.run(
            """
            SELECT string_agg(name || CASE WHEN held > 0 THEN ' (holds ' || held || ' writes)' ELSE '' END, ', ') FROM rockpool.node
                WHERE id <> $1 AND (held > 0 OR NOT fenced AND expires > clock_timestamp())
            """, [.text(node)])
        if let names = others.first?.first?.text {
            throw DataStoreError.unavailable("other nodes share this outbox: \(names); let them hand over what they hold, and stop them")
        }
        for statement in SharedSchema.emptying { try log.run(statement) }
    }

    /// What the shared database keeps of a node: a crash may come before the node's own commit.
    enum Mark: String {
        /// It has taken everything.
        case moved
        /// It has brought everything.
        case returned
    }

    /// Keeps in the shared database, within its transaction, what this node has done.
    func keep(_ mark: Mark) throws {
        try log.run(
            "INSERT INTO rockpool.meta VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [.text(mark.rawValue), .text(node)])
    }
}
