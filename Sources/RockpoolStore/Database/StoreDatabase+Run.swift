// The number of the run of a server, from which its ticks are counted (docs/outbox.md#ticks).
import GRDB
import RockpoolCore

extension StoreDatabase {
    /// Begins a run after the last one that has used this database, and keeps its number.
    func beginRun(_ ticks: Ticks) throws {
        try pool.writeWithoutTransaction { db in
            ticks.begin(after: try Int64.fetchOne(db, sql: "SELECT number FROM run") ?? 0)
            try db.execute(sql: "UPDATE run SET number = ?", arguments: [ticks.run])
        }
    }
}
