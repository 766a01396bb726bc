// The most space that a row takes in a database.
import RockpoolCore

/// Upper estimates of the space that data takes: an excessive reservation costs nothing once settled.
enum Cost {
    private static let block: Int64 = .kib(4)

    /// Allocated bytes of a file: its blocks, and the blocks that map them on file systems without extents.
    static func file(_ length: Int64) -> Int64 {
        let blocks = length / block + 1
        return (blocks + blocks / 1000 + 1).multipliedClamped(by: block)
    }

    /// Bytes of a row of `length` bytes: its pages once in the log and once in the file, with the index pages that it may split; a small
    /// store (limited to `limit` bytes) has few of these.
    static func row(_ length: Int64, within limit: Int64 = .max) -> Int64 {
        let splits = min(14, max(4, limit / .mib(2)))
        return (2 * (length / StoreDatabase.pageSize + 1) + splits).multipliedClamped(by: StoreDatabase.frameSize)
    }
}
