// Snapshots of representations, stored once for all references (docs/outbox.md#schema `snapshot`).
import Crypto
import FoundationEssentials
import GRDB
package import RockpoolCore

extension Conflict.Side {
    /// SHA-256 over ETag, media type and body, with length prefixes for the first two; an absent value differs from an empty one.
    var name: Data {
        var hash = SHA256()
        for part in [etag, contentType] { hash.update(data: Array((part.map { "\($0.utf8.count):\($0)" } ?? "-").utf8)) }
        hash.update(data: body)
        return Data(hash.finalize())
    }

    /// Stores the snapshot under its name, in the transaction of the row that references it.
    func pin(in db: Database) throws -> Data {
        let named = try db.cachedStatement(sql: "SELECT sealed_name(?)")
        let name = try Data.fetchOne(named, arguments: [name]) ?? name
        let sql = "INSERT INTO snapshot (sha, etag, content_type, body) VALUES (?, ?, ?, sealed(?)) ON CONFLICT DO NOTHING"
        try db.cachedStatement(sql: sql).execute(arguments: [name, etag, contentType, body.data])
        return name
    }

    static func fetch(in db: Database, name: Data) throws -> Self? {
        let statement = try db.cachedStatement(sql: "SELECT unsealed(body), content_type, etag FROM snapshot WHERE sha = ?")
        guard let row = try Row.fetchOne(statement, arguments: [name]) else { return nil }
        var columns = RowReader(row)
        return Self(body: Array(try columns.next(Data.self)), contentType: try columns.nextIfAny(), etag: try columns.nextIfAny())
    }
}

extension DataStore {
    /// Returns the pinned representation that an operation's client could have seen when it wrote; nil where it is unknown.
    package func base(of sequence: Int64) async throws -> Conflict.Side? {
        try await database.pool.read { db in
            let statement = try db.cachedStatement(sql: "SELECT base_sha FROM op WHERE seq = ? AND base_sha IS NOT NULL")
            return try Data.fetchOne(statement, arguments: [sequence])
                .flatMap { try Conflict.Side.fetch(in: db, name: $0) }
        }
    }
}
