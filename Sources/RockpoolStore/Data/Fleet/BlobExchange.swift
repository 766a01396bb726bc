// Bodies in files, which the fleet shares in pieces (docs/fleet.md#shared).
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// Reads and writes the files of bodies for the shared database.
struct BlobExchange: Sendable {
    let directory: String
    let footprint: Footprint
    let log: SharedLog
    private static let piece = Int.mib(1)

    private func path(_ hash: Data) -> String { "\(directory)/blobs/\(Digest.hex(hash))" }

    /// Shares bodies before the transaction that names them, for which the other nodes wait.
    /// - Throws: `SharedLog.Absence`.
    func shareAhead(_ hashes: [Data]) throws {
        for hash in hashes {
            do {
                guard try !isShared(hash, asking: log.ask) else { continue }
                try log.ahead { try share(hash) }
            } catch let absence as SharedLog.Absence {
                throw absence
            } catch {
                // What is wrong with it shows in its transaction.
                continue
            }
        }
    }

    /// True if every piece is there: pieces are added by several nodes, and removed.
    private func isShared(_ hash: Data, asking ask: (String, [PostgreSQLValue]) throws -> [[[UInt8]?]]) throws -> Bool {
        guard let length = FileStatus.of(path(hash))?.size else { return false }
        let sql = "SELECT count(*) >= $2 FROM rockpool.blob WHERE sha = $1"
        let count = max(1, (length + Int64(Self.piece) - 1) / Int64(Self.piece))
        return try ask(sql, [.bytes(Array(hash)), .number(count)]).first?.first??.first == 1
    }

    /// Shares a body that is not shared yet, before the row that names it.
    func share(_ hash: Data) throws {
        guard try !isShared(hash, asking: { try log.run($0, $1) }) else { return }
        var (offset, number): (Int, Int64) = (0, 0)
        repeat {
            let bytes = try FileBytes.read(path(hash), from: Int64(offset), upTo: Self.piece)
            guard !bytes.isEmpty || number == 0 else { break }
            try log.run(
                "INSERT INTO rockpool.blob VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                [.bytes(Array(hash)), .number(number), .bytes(bytes)])
            (offset, number) = (offset + bytes.count, number + 1)
            if bytes.count < Self.piece { break }
        } while true
    }

    func unshare(_ hash: Data) throws { try log.run("DELETE FROM rockpool.blob WHERE sha = $1", [.bytes(Array(hash))]) }

    /// Writes the file of a body from its pieces, durably, then its row.
    func take(_ item: SharedItem, in db: Database) throws {
        guard let row = item.data.flatMap({ RowBytes($0) }), let hash = Data.fromDatabaseValue(row["sha"]) else { return }
        let target = path(hash)
        if FileStatus.of(target) == nil {
            let temporary = "\(directory)/blobs/tmp/fleet"
            Paths.remove(temporary)
            let file = try Descriptor.create(temporary)
            for number in Int64(0)... {
                let rows = try log.run(
                    "SELECT data FROM rockpool.blob WHERE sha = $1 AND i = $2", [.bytes(Array(hash)), .number(number)])
                guard let piece = rows.first?.first ?? nil else { break }
                try file.write(all: piece)
            }
            try file.synchronize()
            try Paths.move(temporary, to: target)
            try Paths.synchronizeDirectory("\(directory)/blobs")
            footprint.addFiles(FileStatus.of(target)?.allocated ?? 0)
        }
        try db.execute(
            sql: "INSERT INTO blob (sha, length, refs) VALUES (?, ?, 0) ON CONFLICT DO NOTHING", arguments: [hash, row["length"]])
    }

    func remove(_ item: SharedItem, in db: Database) throws {
        guard let key = RowBytes(item.key) else { return }
        try db.execute(sql: "DELETE FROM blob WHERE sha = ? AND refs <= 0", arguments: [key["sha"]])
    }

    /// Counts the references as the triggers of the schema would.
    func move(from old: Data?, to new: Data?, in db: Database) throws {
        guard old != new else { return }
        if let new { try db.execute(sql: "UPDATE blob SET refs = refs + 1 WHERE sha = ?", arguments: [new]) }
        if let old { try db.execute(sql: "UPDATE blob SET refs = max(0, refs - 1) WHERE sha = ?", arguments: [old]) }
    }
}
