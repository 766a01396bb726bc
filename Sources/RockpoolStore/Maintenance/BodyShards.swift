// Compares the files of `bodies/` with the rows, one of its 256 directories at a time (docs/storage.md#cleanup step 4).
import FoundationEssentials
import GRDB

/// `bodies/` on the disk. A body file has a name of 64 hexadecimal digits and is in the directory named by the first two.
struct BodyShards: Sendable {
    let root: String

    /// The differences between one directory and the rows.
    struct Difference: Sendable {
        /// Files that no row references.
        var unnamed: [[UInt8]] = []
        /// Bodies of rows without a file.
        var missing: [[UInt8]] = []
        /// Files that are not body files, as `shard/name`.
        var foreign: [String] = []
    }

    /// Returns the directories that contain bodies, as two hexadecimal digits each. Blocks.
    func shards() -> [String] { Paths.names(in: root).filter(isShard).sorted() }

    /// Returns the names under `bodies/` that are none of the 256 directories. Blocks.
    func foreign() -> [String] { Paths.names(in: root).filter { !isShard($0) } }

    /// Returns the bodies in a shard, and the other files in it as `shard/name`. Blocks.
    func names(inShard shard: String) -> (bodies: [[UInt8]], foreign: [String]) {
        // A symbolic link to another directory is not followed.
        let names = isShard(shard) ? Paths.names(in: "\(root)/\(shard)") : []
        var (bodies, foreign): ([[UInt8]], [String]) = ([], [])
        for name in names {
            if let hash = Digest.bytes(name), Digest.hex(hash) == name, name.hasPrefix(shard) {
                bodies.append(hash)
            } else {
                foreign.append("\(shard)/\(name)")
            }
        }
        return (bodies, foreign)
    }

    /// Returns the range of a shard's hashes for SQL: the first is inclusive, the second exclusive.
    static func bounds(of shard: UInt8) -> StatementArguments {
        [[shard].data, (shard == .max ? [UInt8](repeating: .max, count: 33) : [shard + 1]).data]
    }

    private func isShard(_ name: String) -> Bool {
        name.utf8.count == 2 && name.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
            && FileStatus.of("\(root)/\(name)")?.isDirectory == true
    }

    /// Lists the files before reading the rows, so that a body stored meanwhile is in neither result. Blocks.
    func difference(in shard: UInt8, reader: any DatabaseReader) throws -> Difference {
        var found = Difference()
        let directory = "\(root)/\(Digest.hex([shard]))"
        let (bodies, foreign) = names(inShard: Digest.hex([shard]))
        found.foreign = foreign
        let files = Set(bodies)
        let named = try reader.read { db in
            let statement = try db.cachedStatement(sql: "SELECT sha FROM body WHERE sha >= ? AND sha < ?")
            return Set(try Data.fetchAll(statement, arguments: Self.bounds(of: shard)).map { Array($0) })
        }
        found.unnamed = files.subtracting(named).sorted(by: { $0.lexicographicallyPrecedes($1) })
        found.missing = named.subtracting(files).filter { FileStatus.of("\(directory)/\(Digest.hex($0))") == nil }
        return found
    }
}
