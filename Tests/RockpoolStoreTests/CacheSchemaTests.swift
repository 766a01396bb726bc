// A cache of an older version is migrated with all its content (docs/storage.md#database-rules).
import Crypto
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct CacheSchemaTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Creates a database file with the schema of version `version`.
    private func made(by version: Int) throws -> StoreDatabase {
        try FileManager.default.createDirectory(atPath: scratch.cache, withIntermediateDirectories: true)
        let identity = DatabaseIdentity(
            applicationID: CacheSchema.identity.applicationID, migrations: Array(CacheSchema.identity.migrations[..<version]),
            synchronous: .normal)
        return try StoreDatabase(path: "\(scratch.cache)/cache.sqlite", identity: identity, limit: .mb(100))
    }

    /// The schemas of released versions are frozen: a change of their SQL breaks the existing caches.
    @Test func version1IsAsItWasReleased() throws {
        let database = try made(by: 1)
        let sql = try database.pool.read { db in
            try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").joined(separator: "\n")
        }
        #expect(Digest.hex(SHA256.hash(data: Data(sql.utf8))) == "b92648f0fea3d6d903c8afd00687c4acf8aae995af362e64af2be733b6d8ef76")
        try database.pool.close()
    }

    /// Inserts a row in the format of the first version.
    private func insert(_ response: StoredResponse, body: [UInt8], into database: StoreDatabase) async throws {
        let lifetime = EntryLifetime(response, categories: CacheCategory.builtIn)
        let moment = time.now.milliseconds
        let arguments: StatementArguments = [
            EntryRow.keyHash(key("/a")), Vary.variantKey(response.requestFields), key("/a").text, key("/a").url, origin.url,
            response.category, FieldCodec.encode(response.head.fields), FieldCodec.encode(response.requestFields), moment, moment, moment,
            moment, lifetime.freshUntil.milliseconds, lifetime.keptUntil.milliseconds, Int64(body.count) + 1024,
            Data(SHA256.hash(data: body)), body.count, Data(body),
        ]
        try await database.pool.write { db in
            try db.execute(
                sql: """
                    INSERT INTO entry (key_hash, variant, key, url, origin, identity, category, status, fields, request_fields,
                        request_time, response_time, stored_at, used_at, fresh_until, kept_until, pinned, bytes, body_sha, body_length,
                        in_file, body)
                    VALUES (?, ?, ?, ?, ?, '', ?, 200, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, 0, ?)
                    """, arguments: arguments)
        }
    }

    @Test(arguments: 1..<CacheSchema.identity.migrations.count)
    func anOlderCacheKeepsItsEntries(version: Int) async throws {
        let old = try made(by: version)
        let response = StoredResponse(
            head: ResponseHead(status: 200, fields: [.eTag: "\"1\""]), requestTime: time.now, asked: Tick(number: time.now.milliseconds),
            responseTime: time.now, bodyLength: 100, category: "assets")
        try await insert(response, body: bytes(100), into: old)
        try old.pool.close()
        let store = try openCache(scratch.cache, time)
        let found = try #require(try await store.only("/a"))
        #expect(found.response == response && found.isPinned)
        let usage = try #require(try await store.usage().byCategory["assets"])
        #expect((usage.pinnedEntries, usage.pinnedBytes) == (1, 1124))
        #expect(try await store.bytes(of: found) == bytes(100))
        #expect(try await store.list(category: "assets").map(\.url) == [origin.url + "/a"])
        // Newer features work for migrated entries.
        try await store.freshen(found, as: response, groups: ["a"])
        #expect(try await store.invalidate(groups: ["a"], origin: origin) == 1)
        #expect(try await store.remove(where: .group("a", origin: nil)).entries == 1)
        #expect(Paths.names(in: scratch.cache).allSatisfy { !$0.contains("corrupt") })
        await store.close()
    }

    /// Up to version 3 a body could be assembled wrongly: the migration drops exactly the entries that may be affected.
    @Test(
        arguments: [
            (200, "\"1\"", 65_537, false), (200, "\"1\"", 65_536, true), (200, "W/\"1\"", 65_537, true), (200, nil, 65_537, true),
            (206, "\"1\"", 100, false), (404, "\"1\"", 65_537, true),
        ] as [(Int, String?, Int, Bool)])
    func whatMayHaveBeenCompletedWronglyIsDropped(_ status: Int, _ tag: String?, length: Int, isKept: Bool) async throws {
        let old = try made(by: 3)
        var fields: HTTPFields = status == 206 ? [.contentRange: "bytes 0-99/200"] : [:]
        fields[.eTag] = tag
        let response = StoredResponse(
            head: ResponseHead(status: status, fields: fields), requestTime: time.now, responseTime: time.now, bodyLength: Int64(length),
            category: "assets")
        try await insert(response, body: bytes(length), into: old)
        try await old.pool.write { try $0.execute(sql: "UPDATE entry SET status = ?", arguments: [status]) }
        try old.pool.close()
        let store = try openCache(scratch.cache, time)
        #expect(try await store.lookup(key("/a")).count == (isKept ? 1 : 0))
        #expect(try await store.usage().entries == (isKept ? 1 : 0))
        await store.close()
    }
}
