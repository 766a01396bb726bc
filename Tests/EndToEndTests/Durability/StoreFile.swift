// Direct access to the outbox's file: created with an older version's schema, aged, audited (docs/storage.md#ledger,
// docs/storage.md#database-rules).
import Foundation
import GRDB
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

/// The `state_dir` of a stopped server.
struct StoreFile {
    let directory: String
    private var path: String { directory + "/data.sqlite" }

    /// Creates a store of version 1 with these writes pending, except the first, which is in flight.
    func makeVersion1(_ writes: [Write], upstream port: Int) throws {
        let blobs = directory + "/blobs"
        try FileManager.default.createDirectory(
            atPath: blobs, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory)
        let identity = DatabaseIdentity(
            applicationID: DataSchema.identity.applicationID, migrations: [DataSchema.version1], synchronous: .full)
        let database = try StoreDatabase(path: path, identity: identity, limit: .mb(100))
        try database.pool.write { db in
            for (index, write) in writes.enumerated() {
                let body = Data(write.body.utf8)
                var sha: Data?
                if body.count > DataStore.inlineLimit {
                    var hash = PayloadHash(.sha256)
                    hash.update(ByteBuffer(bytes: body))
                    let digest = hash.digest.value
                    try body.write(to: URL(fileURLWithPath: "\(blobs)/\(Digest.hex(digest))"))
                    try db.execute(sql: "INSERT INTO blob VALUES (?, ?, 0)", arguments: [Data(digest), body.count])
                    sha = Data(digest)
                }
                try db.execute(
                    sql: """
                        INSERT INTO op (id, idem_key, key_origin, fingerprint, principal, upstream, origin, method, target, lane,
                            intent, headers, body_len, blob_sha, body, state, accepted_at, next_at)
                        VALUES (?, ?, 'proxy', zeroblob(32), '', 'notes', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 7, 8)
                        """,
                    arguments: [
                        "op-\(write.key)", write.key, "http://127.0.0.1:\(port)", write.method, write.path,
                        write.method == "POST" ? write.key : write.path,
                        ["POST": "create", "PUT": "replace"][write.method] ?? "patch",
                        FieldCodec.encode([.contentType: "application/json"]), body.count, sha, sha == nil ? body : nil,
                        index == 0 ? "inflight" : "pending",
                    ])
                if index == 0 { try db.execute(sql: "INSERT INTO attempt (seq, n, started) VALUES (1, 1, 7)") }
            }
        }
        try database.pool.close()
    }

    /// Sets the end of all ended operations to 100 days ago.
    func age() throws {
        try DatabaseQueue(path: path).write { try $0.execute(sql: "UPDATE op SET ended_at = ended_at - 100 * 86400000") }
    }

    /// Checks that the file, its rows and the blobs agree, and that no unfinished work is left.
    func audit() throws {
        let queue = try DatabaseQueue(path: path)
        let rows = try queue.read { db in
            try #expect(String.fetchAll(db, sql: "PRAGMA integrity_check") == ["ok"])
            try #expect(Row.fetchAll(db, sql: "PRAGMA foreign_key_check").isEmpty)
            try #expect(Int.fetchOne(db, sql: "SELECT count(*) FROM op WHERE state = 'inflight'") == 0)
            let owners = try LiveWriteRow.bodyOwners(in: db)
            let wrong = "SELECT count(*) FROM blob WHERE refs = 0 OR refs <> (SELECT count(*) FROM \(owners) WHERE blob_sha = sha)"
            try #expect(Int.fetchOne(db, sql: wrong) == 0, "a blob has a wrong reference count")
            let dangling = "SELECT count(*) FROM op WHERE blob_sha IS NOT NULL AND blob_sha NOT IN (SELECT sha FROM blob)"
            try #expect(Int.fetchOne(db, sql: dangling) == 0, "an operation has no body")
            return try Data.fetchAll(db, sql: "SELECT sha FROM blob").map { Digest.hex($0) }
        }
        let files = Paths.names(in: directory + "/blobs").filter { $0 != "tmp" }
        #expect(Set(files) == Set(rows), "files and rows of blobs differ")
        #expect(Paths.names(in: directory + "/blobs/tmp").isEmpty)
        for file in files { #expect(try Digest.hex(Digest.ofFile("\(directory)/blobs/\(file)")) == file) }
    }
}
