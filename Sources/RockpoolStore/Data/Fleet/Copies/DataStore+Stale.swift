// What a node has found out of date, told to the other nodes of its fleet (docs/fleet.md#copies).
import GRDB
package import RockpoolCore

extension DataStore {
    /// The most places that a fleet keeps, and for how long: a node that was away for longer has copies of their own lifetime.
    private static let keptPlaces = 10_000
    private static let keptFor = TimeSpan.hours(24)

    /// Tells the other nodes what is out of date. No effect without a fleet.
    /// - Throws: `DataStoreError`; `.away` while the shared database is.
    package func share(_ places: Set<StalePlace>) async throws {
        guard isOfFleet else { return }
        let now = clock()
        try await translated {
            try await queue.commit(isRepeatable: true, mayLinger: true) { db in
                let statement = try db.cachedStatement(
                    sql: "INSERT INTO fleet_stale VALUES (?, ?, ?) ON CONFLICT (kind, place) DO UPDATE SET at = excluded.at")
                for place in places { try statement.execute(arguments: [place.kind, place.place, now.milliseconds]) }
                try db.cachedStatement(
                    sql: """
                        DELETE FROM fleet_stale WHERE at < ? OR rowid IN (
                            SELECT rowid FROM fleet_stale ORDER BY at DESC LIMIT -1 OFFSET \(Self.keptPlaces))
                        """
                ).execute(arguments: [(now - Self.keptFor).milliseconds])
            }
        }
    }
}
