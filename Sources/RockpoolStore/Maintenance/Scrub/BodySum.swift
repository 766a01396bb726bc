// The sum of the bodies' allocated bytes (docs/storage.md#scrub).
import GRDB
import RockpoolCore

/// The sum of the allocated bytes of all bodies, kept by triggers.
enum BodySum {
    /// Returns the excess of the sum over the rows it sums up.
    static func drift(in db: Database) throws -> Int64 {
        try Int64.fetchOne(
            db,
            sql: """
                SELECT coalesce((SELECT bytes FROM total WHERE name = 'bodies'), 0) - (SELECT coalesce(sum(allocated), 0) FROM body)
                """) ?? 0
    }
}
