// Reads the sums that triggers keep per category (docs/storage.md#ledger), so that no rows are counted.
import GRDB

extension CategoryUsage {
    /// Returns the usage of every category that has entries, by name.
    static func byName(in db: Database) throws -> [String: CategoryUsage] {
        let statement = try db.cachedStatement(
            sql: "SELECT category, entries, bytes, pinned_entries, pinned_bytes FROM usage WHERE entries > 0")
        return try Row.fetchAll(statement).reduce(into: [:]) { usage, row in
            var columns = RowReader(row)
            usage[try columns.next(String.self)] = CategoryUsage(
                entries: try columns.next(), bytes: try columns.next(), pinnedEntries: try columns.next(),
                pinnedBytes: try columns.next())
        }
    }
}
