// An outbox of an older version is migrated with all its content (docs/storage.md#database-rules; docs/outbox.md#fault-points, K17).
import Crypto
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct DataSchemaTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    /// Creates a database file with the schema of version `version`.
    private func made(by version: Int) throws -> StoreDatabase {
        try FileManager.default.createDirectory(
            atPath: scratch.state, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let identity = DatabaseIdentity(
            applicationID: DataSchema.identity.applicationID, migrations: Array(DataSchema.identity.migrations[..<version]),
            synchronous: .full)
        return try StoreDatabase(path: "\(scratch.state)/data.sqlite", identity: identity, limit: .mb(100))
    }

    /// The schemas of released versions are frozen: a change of their SQL breaks the existing outboxes.
    @Test(arguments: [
        (1, "d8da8a1382dbcbc3af22121115df0e3e28f98e98a240a9e24c7ca62253b2bf8b"),
        (2, "0675f21ebccea9bd2e6cf11642ea1a16a00b88b72a695ca9a100d6122d695d08"),
        (3, "bc888113850e3d3538578a0f851d123bef73505788bbf2458232cb5f3cf3a612"),
        (4, "45a3eedb430277704b73fcddb8a44153d24b3de7582bf7ae84903c5f35af02d7"),
    ])
    func versionsAreAsTheyWereReleased(_ version: Int, _ hash: String) throws {
        let sql = try DatabaseQueue().write { db in
            for step in DataSchema.identity.migrations[..<version] { try step(db) }
            return try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").joined(separator: "\n")
        }
        let words = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(Digest.hex(SHA256.hash(data: Data(words.utf8))) == hash)
    }

    @Test(arguments: [
        ("x IN ('a', 'b')", "x IN ('a', 'b')"), ("x IN ('a', 'b', 'c')", "(x = 'a' OR x = 'b' OR x = 'c')"),
        ("WHEN NOT (old.state IN (1, 2,\n 3) AND y)", "WHEN NOT ((old.state = 1 OR old.state = 2 OR old.state = 3) AND y)"),
        ("CHECK (a NOT IN ('a', 'b', 'c')), b", "CHECK ((a <> 'a' AND a <> 'b' AND a <> 'c')), b"),
        ("x IN (old.a, old.b, old.c)", "x IN (old.a, old.b, old.c)"), ("x IN (SELECT 1, 2, 3)", "x IN (SELECT 1, 2, 3)"),
        ("x IN (1, 2, 3) OR y IN (4) OR z IN (5, 6, 7)", "(x = 1 OR x = 2 OR x = 3) OR y IN (4) OR (z = 5 OR z = 6 OR z = 7)"),
    ])
    func listsAreUnrolled(_ sql: String, _ unrolled: String) { #expect(ConstantLists.unrolled(sql) == unrolled) }

    /// No statement that is run for every write makes a table of its own, not even for its CHECKs, partial indexes and triggers; also not in a
    /// database of an older version.
    @Test(arguments: [nil, 2, DataSchema.identity.migrations.count]) func noStatementMakesATable(_ version: Int?) async throws {
        if let version { try made(by: version).pool.close() }
        let store = try openData(scratch.state, ManualTime())
        let cache = try openCache(scratch.cache, ManualTime())
        func tables(_ queue: CommitQueue, _ sql: String) async throws -> [String] {
            try await queue.outside { db in
                let given = sql.replacing(/\?\d*/, with: "NULL")
                return try Row.fetchAll(db, sql: "EXPLAIN \(given)").map { "\($0["opcode"] ?? "") \($0["p4"] ?? "")" }.filter {
                    $0.contains("Ephemeral")
                }
            }
        }
        for sql in [OperationColumn.insert, TransitionUpdate.plain.sql, "DELETE FROM live_write WHERE n = 1"] {
            try await #expect(tables(store.queue, sql) == [], "\(sql)")
        }
        try await #expect(tables(cache.queue, EntryRow.insertion) == [])
        await store.close()
        await cache.close()
    }

    @Test func whatWasBeforeAMigrationIsKeptUntilTheNextCleanStop() async throws {
        try made(by: 2).pool.close()
        let copy = "\(scratch.state)/data.sqlite.v2"
        let store = try openData(scratch.state, ManualTime())
        let kept = try DatabaseQueue(path: copy)
        #expect(try await kept.read { try Int.fetchOne($0, sql: "PRAGMA user_version") } == 2)
        try kept.close()
        #expect(Scratch.allocated(scratch.state) <= store.footprint.parts.total)
        await store.close()
        #expect(!FileManager.default.fileExists(atPath: copy))
        await (try openData(scratch.state, ManualTime())).close()
        #expect(!Paths.names(in: scratch.state).contains { $0.hasPrefix("data.sqlite.v") })
    }

    @Test func anOutboxOfVersion1KeepsItsOperations() async throws {
        let old = try made(by: 1)
        try await old.pool.write { db in
            try db.execute(sql: "INSERT INTO blob VALUES (x'\(String(repeating: "ab", count: 32))', 5, 0)")
            for (sequence, state) in [(3, "pending"), (4, "inflight"), (9, "delivered")] {
                try db.execute(
                    sql: """
                        INSERT INTO op (seq, id, idem_key, key_origin, fingerprint, principal, upstream, origin, method, target, lane,
                            intent, headers, body_len, blob_sha, state, accepted_at, next_at)
                        VALUES (?, ?, 'k', 'proxy', zeroblob(32), '', 'notes', 'http://notes', 'POST', '/v1/notes', 'lane', 'create', ?, 5,
                            x'\(String(repeating: "ab", count: 32))', ?, 7, 8)
                        """,
                    arguments: [sequence, "op\(sequence)", FieldCodec.encode([.accept: "*/*"]), state])
                try db.execute(sql: "INSERT INTO attempt (seq, n, started) VALUES (?, 1, 7)", arguments: [sequence])
            }
            try db.execute(sql: "DELETE FROM op WHERE seq = 9")
        }
        try old.pool.close()
        let store = try openData(scratch.state, time)
        #expect(try await store.operations().items.map(\.id) == ["op3", "op4"])
        let crashed = try #require(try await store.operation(id: "op4"))
        #expect(crashed.state == .uncertain && crashed.body.length == 5 && crashed.request.fields == [.accept: "*/*"])
        #expect(try await store.attempts(of: crashed).map(\.sent) == [.maybe])
        #expect(try await store.queue.outside { try Int.fetchOne($0, sql: "SELECT refs FROM blob") } == 2)
        // A sequence is never reused, even after the row with the highest one is gone.
        #expect(try await store.append(write("new")).sequence == 10)
        await store.close()
    }

    /// Attempts are assigned to the current revision of their operation; conflicts and pinned bases work right after the migration.
    @Test(arguments: [1, 2]) func anOlderOutboxCanKeepConflicts(_ version: Int) async throws {
        let old = try made(by: version)
        try await old.pool.write { db in
            for (sequence, revision) in [(1, 0), (2, 3)] {
                try db.execute(
                    sql: """
                        INSERT INTO op (seq, id, \(version > 1 ? "place," : "") idem_key, key_origin, key_rev, fingerprint, principal, upstream,
                            origin, method, target, lane, intent, headers, body_len, state, accepted_at, next_at)
                        VALUES (?1, ?2, \(version > 1 ? "?1," : "") 'k', 'proxy', ?3, zeroblob(32), '', 'notes', 'http://notes', 'PUT', '/n/1',
                            ?2, 'replace', ?4, 0, 'conflicted', 7, 8)
                        """, arguments: [sequence, "op\(sequence)", revision, FieldCodec.encode([:])])
                try db.execute(
                    sql: "INSERT INTO attempt (seq, n, started, ended, evidence) VALUES (?, 1, 7, 8, 'maybe')", arguments: [sequence])
            }
        }
        try old.pool.close()
        let store = try openData(scratch.state, time)
        let bench = ConflictBench(time: time)
        for (sequence, id) in [(Int64(1), "op1"), (2, "op2")] {
            let operation = try #require(try await store.operation(id: id))
            #expect(operation.state == .conflicted && operation.lostAt == Timestamp(milliseconds: 7))
            #expect(try await store.base(of: sequence) == nil)
            let revised = try await store.meet(
                bench.conflict("c-\(id)", of: id, sequence: sequence), decision: .resend(bench.revision()), now: time.now)
            #expect(revised.lostAt == nil && revised.state == .pending)
        }
        #expect(try await bench.snapshots(store) == 4)
        let new = try await store.append(bench.put("new"))
        #expect(new.sequence == 3)
        #expect(try await store.base(of: 3) == bench.put("new").base)
        await store.close()
    }

    @Test func whatTheCodeDoesNotKnowIsRefused() async throws {
        let store = try openData(scratch.state, time)
        _ = try await store.append(write("1"))
        for change in ["reason = 'because'", "state = 'delivered'", "state = 'lost'"] {
            await #expect(throws: DatabaseError.self) {
                try await store.queue.outside { try $0.execute(sql: "UPDATE op SET \(change)") }
            }
        }
        for reason in OperationReason.allCases {
            try await store.queue.outside { try $0.execute(sql: "UPDATE op SET reason = ?", arguments: [reason.rawValue]) }
        }
        await store.close()
    }
}
