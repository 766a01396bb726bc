// The files of `bodies/` against the rows, one directory of 256 at a time (storage.md §2, §6 step 4).
import FoundationEssentials
import GRDB

/// `bodies/` as it lies on the disk: what is ours has 64 hexadecimal digits for a name and lies where its first two say.
struct BodyShards: Sendable {
    let root: String

    /// What one directory and the rows disagree about.
    struct Difference: Sendable {
        /// Files that no row names.
        var unnamed: [[UInt8]] = []
        /// Bodies of rows whose file is not there.
        var missing: [[UInt8]] = []
        /// Files that are none of ours, as `shard/name`.
        var foreign: [String] = []
    }

    /// The directories that hold bodies, as two hexadecimal digits each. Blocks.
    func shards() -> [String] { Paths.names(in: root).filter(isShard).sorted() }

    /// Names under `bodies/` that are none of our 256 directories. Blocks.
    func foreign() -> [String] { Paths.names(in: root).filter { !isShard($0) } }

    /// The bodies in a shard, and the files there that are none of ours, as `shard/name`. Blocks.
    func names(inShard shard: String) -> (bodies: [[UInt8]], foreign: [String]) {
        // A link to elsewhere is not ours to look into.
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

    /// The hashes that a shard's bodies lie between, as SQL has them: the first is in it, the second is past it.
    static func bounds(of shard: UInt8) -> StatementArguments {
        [[shard].data, (shard == .max ? [UInt8](repeating: .max, count: 33) : [shard + 1]).data]
    }

    private func isShard(_ name: String) -> Bool {
        name.utf8.count == 2 && name.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
            && FileStatus.of("\(root)/\(name)")?.isDirectory == true
    }

    /// The files are listed before the rows are read: what is stored meanwhile is in neither list. Blocks.
    func difference(in shard: UInt8, _ reader: any DatabaseReader) throws -> Difference {
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
