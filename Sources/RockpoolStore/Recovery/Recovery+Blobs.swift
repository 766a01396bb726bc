// Recovery of the blobs: copied when their content matches their name, with new reference counts.
import FoundationEssentials
import GRDB
import RockpoolCore

extension Recovery {
    /// Rebuilds the table of blobs from the files and the operations that reference them; the old table is not read.
    mutating func takeBlobs(_ sink: StoreDatabase) throws {
        let named = try sink.pool.read { db in
            let owners = try LiveWriteRow.bodyOwners(in: db)
            let sql = "SELECT blob_sha, group_concat(id), count(*), max(body_len) FROM \(owners) GROUP BY blob_sha"
            return try Row.fetchAll(db, sql: sql).map { row in
                var columns = RowReader(row)
                let hash = Array(try columns.next(Data.self))
                let ids: String = try columns.next()
                return (
                    hash, ids.split(separator: ",").map(String.init), references: try columns.next(Int.self), try columns.next(Int64.self)
                )
            }
        }
        for (hash, ids, references, length) in named {
            let name = Digest.hex(hash)
            guard copy(name, to: "blobs", length: length) else {
                report.lostBlobs.append(.init(sha256: name, operations: ids))
                continue
            }
            report.blobs += 1
            try sink.pool.write {
                try $0.execute(
                    sql: "INSERT INTO blob (sha, length, refs) VALUES (?, ?, ?)", arguments: [hash.data, length, references])
            }
        }
        try keepRest(Set(named.map { Digest.hex($0.0) }))
        try Paths.synchronizeDirectory("\(target)/blobs")
    }

    /// Keeps unreferenced blobs when operations were lost: such a blob may belong to one of them.
    private mutating func keepRest(_ named: Set<String>) throws {
        guard report.tables.contains(where: { $0.name == "op" && !($0.isWhole && $0.unplaced == 0) }) else { return }
        for name in Paths.names(in: "\(directory)/blobs").sorted() where Digest.bytes(name) != nil && !named.contains(name) {
            try Paths.makeDirectory("\(target)/unplaced-blobs")
            if copy(name, to: "unplaced-blobs", length: nil) { report.unplacedBlobs += 1 }
        }
    }

    /// - Returns: true if the file existed and its content matches its name. Any other copy is removed.
    private func copy(_ name: String, to folder: String, length: Int64?) -> Bool {
        let (source, copy) = ("\(directory)/blobs/\(name)", "\(target)/\(folder)/\(name)")
        guard let status = FileStatus.of(source), status.isFile, length.map({ SealedChunks.isSize(status.size, of: $0) }) ?? true else {
            return false
        }
        do {
            let file = try Descriptor.create(copy)
            var offset: Int64 = 0
            while true {
                let bytes = try FileBytes.read(source, from: offset, upTo: .mib(1))
                if bytes.isEmpty { break }
                try file.write(all: bytes)
                offset += Int64(bytes.count)
            }
            try file.synchronize()
            let isSealed = try BodySeal.isSealed(FileBytes.read(copy, from: 0, upTo: BodySeal.magic.count))
            if isSealed, seal.isName(Digest.bytes(name) ?? [], of: try SealedFile(copy, seal).digest()) { return true }
            if try Digest.hex(Digest.ofFile(copy)) == name { return true }
        } catch {}
        Paths.remove(copy)
        return false
    }
}
