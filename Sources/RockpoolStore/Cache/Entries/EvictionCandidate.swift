// An entry that is removed.
import FoundationEssentials
import GRDB
import RockpoolCore

/// An entry selected for removal.
struct EvictionCandidate: Sendable {
    var id: Int64
    var key: String
    var category: String
    var bytes: Int64
    var inlineBytes: Int64
    var usedAt: Timestamp
    /// The hash of a body that is a file; nil for a body in its row.
    var fileHash: [UInt8]?
    /// True if it was not read since it was stored (docs/storage.md#eviction).
    var isOnProbation = false
    /// Its rank in its category: the lowest leaves first.
    var rank: Double = 0

    /// Returns the rows that meet a condition, in the given order.
    static func fetch(
        in db: Database, where condition: String, arguments: StatementArguments, order: String = "id", limit: Int
    ) throws -> [EvictionCandidate] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, key, category, bytes, in_file, used_at, body_sha, uses = \(CacheSchema.unread), rank FROM entry WHERE \(condition) ORDER BY \(order) LIMIT \(limit)
                """)
        return try Row.fetchAll(statement, arguments: arguments).map { row in
            var columns = RowReader(row)
            let (id, key, category): (Int64, String, String) = (try columns.next(), try columns.next(), try columns.next())
            let bytes: Int64 = try columns.next()
            let isInFile: Bool = try columns.next()
            let usedAt = Timestamp(milliseconds: try columns.next())
            let hash: Data = try columns.next()
            return EvictionCandidate(
                id: id, key: key, category: category, bytes: bytes, inlineBytes: isInFile ? 0 : bytes, usedAt: usedAt,
                fileHash: isInFile ? Array(hash) : nil, isOnProbation: try columns.next(), rank: try columns.next())
        }
    }
}

extension [EvictionCandidate] {
    /// Returns the shortest prefix that takes `bytes` in total.
    func reaching(_ bytes: Int64) -> [EvictionCandidate] {
        var left = bytes
        return Array(
            prefix { row in
                defer { left -= row.bytes }
                return left > 0
            })
    }
}
