// Opening of databases: effective pragmas, and rejected files (docs/storage.md#database-rules).
import Foundation
import GRDB
import HTTPTypes
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct StoreDatabaseTests {
    let scratch: Scratch
    var path: String { "\(scratch.path)/x.sqlite" }

    init() throws { scratch = try Scratch() }

    static let table: @Sendable (Database) throws -> Void = { try $0.execute(sql: "CREATE TABLE t (n INTEGER) STRICT") }

    func identity(_ versions: Int = 1, synchronous: DatabaseIdentity.Synchronous = .full, id: Int32 = 7) -> DatabaseIdentity {
        let more: [@Sendable (Database) throws -> Void] = (1..<max(1, versions)).map { n in
            { try $0.execute(sql: "ALTER TABLE t ADD COLUMN c\(n) INTEGER") }
        }
        return DatabaseIdentity(applicationID: id, migrations: [Self.table] + more, synchronous: synchronous)
    }

    @Test(arguments: [DatabaseIdentity.Synchronous.normal, .full])
    func pragmasHoldAfterOpening(_ synchronous: DatabaseIdentity.Synchronous) throws {
        let database = try StoreDatabase(path: path, identity: identity(synchronous: synchronous), limit: .mb(500))
        let writer = try [
            "synchronous", "page_size", "auto_vacuum", "trusted_schema", "cell_size_check", "foreign_keys", "application_id",
            "user_version", "wal_autocheckpoint",
        ].map { name in
            try database.pool.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA \(name)") }
        }
        #expect(writer == [synchronous.rawValue, 8192, 2, 0, 1, 1, 7, 1, 953])
        #expect(try database.pool.read { try String.fetchOne($0, sql: "PRAGMA journal_mode") } == "wal")
        #expect(try database.pool.read { try Int.fetchOne($0, sql: "PRAGMA wal_autocheckpoint") } == 0)
    }

    /// In the outbox, whatever the SQLite of the machine was built for; the cache keeps that build's default.
    @Test func aDeletedRowIsOverwritten() throws {
        let database = try StoreDatabase(path: path, identity: identity(), limit: .mb(10))
        try database.pool.writeWithoutTransaction { db in
            #expect(try Int.fetchOne(db, sql: "PRAGMA secure_delete") != 0)
            try db.execute(sql: "CREATE TABLE pearl (n INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
            try db.execute(sql: "INSERT INTO pearl VALUES (1, 'a pearl that stays'), (2, 'a pearl that is sold')")
            try db.execute(sql: "DELETE FROM pearl WHERE n = 2")
            try db.truncateLog()
        }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(bytes.range(of: Data("a pearl that stays".utf8)) != nil)
        #expect(bytes.range(of: Data("a pearl that is sold".utf8)) == nil)
        try database.pool.close()
    }

    @Test func migratesFromEveryVersion() throws {
        for versions in 1...3 {
            let database = try StoreDatabase(path: path, identity: identity(versions), limit: .mb(10))
            #expect(try database.pool.read { try $0.columns(in: "t").count } == versions)
            try database.pool.close()
        }
    }

    @Test func refusesANewerSchemaUntouched() throws {
        try StoreDatabase(path: path, identity: identity(3), limit: .mb(10)).pool.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(throws: DatabaseRefusal.newerSchema(found: 3, known: 1)) {
            try StoreDatabase(path: path, identity: identity(1), limit: .mb(10))
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test(arguments: ["not a database at all, just text ".data(using: .utf8), Data(repeating: 0xFF, count: 8192)])
    func refusesGarbage(_ garbage: Data?) throws {
        try #require(garbage).write(to: URL(fileURLWithPath: path))
        #expect { try StoreDatabase(path: path, identity: identity(), limit: .mb(10)) } throws: {
            if case .corrupt = $0 as? DatabaseRefusal { true } else { false }
        }
    }

    @Test(arguments: [true, false]) func refusesALogWithoutItsFile(_ isEmpty: Bool) throws {
        if isEmpty { try Data().write(to: URL(fileURLWithPath: path)) }
        try Data(repeating: 7, count: 100).write(to: URL(fileURLWithPath: path + "-wal"))
        #expect(throws: DatabaseRefusal.corrupt("the file is \(isEmpty ? "empty" : "gone"), its log is not")) {
            try StoreDatabase(path: path, identity: identity(), limit: .mb(10))
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path + "-wal")).count == 100)
    }

    /// The state after a process died while it switched the file to WAL mode or created its first table.
    @Test func aJournalThatWasLeftIsRolledBack() throws {
        let dying = try DatabaseQueue(path: path + ".dying")
        try dying.writeWithoutTransaction { db in
            // A cache so small that the journal is on the disk before the commit.
            try db.execute(sql: "PRAGMA cache_size = 1; BEGIN; CREATE TABLE half (x)")
            for _ in 0..<100 { try db.execute(sql: "INSERT INTO half VALUES (randomblob(4000))") }
            for name in ["", "-journal"] { try FileManager.default.copyItem(atPath: path + ".dying" + name, toPath: path + name) }
            try db.execute(sql: "ROLLBACK")
        }
        #expect((FileStatus.of(path + "-journal")?.size ?? 0) > 0)
        let database = try StoreDatabase(path: path, identity: identity(), limit: .mb(10))
        let tables = try database.pool.read { try String.fetchAll($0, sql: "SELECT name FROM sqlite_master") }
        #expect(tables == ["t"] && FileStatus.of(path + "-journal") == nil)
    }

    @Test func refusesSomebodyElsesDatabase() throws {
        try StoreDatabase(path: path, identity: identity(id: 8), limit: .mb(10)).pool.close()
        #expect { try StoreDatabase(path: path, identity: identity(id: 7), limit: .mb(10)) } throws: {
            if case .corrupt = $0 as? DatabaseRefusal { true } else { false }
        }
    }

    @Test(arguments: [
        HTTPFieldsCase(pairs: []),
        HTTPFieldsCase(pairs: [("ETag", Array("\"a\"".utf8)), ("etag", []), ("X-Ünicode".filter(\.isASCII), [0xE9, 0x20, 0xFF])]),
        HTTPFieldsCase(pairs: [("X-Long", [UInt8](repeating: 0x61, count: 70_000)), ("a", [0x62])]),
    ])
    func fieldsComeBackByteForByte(_ sample: HTTPFieldsCase) throws {
        let decoded = try #require(FieldCodec.decode(FieldCodec.encode(sample.fields)))
        #expect(decoded.map(\.name.rawName) == sample.fields.map(\.name.rawName))
        #expect(decoded.map { $0.withUnsafeBytesOfValue { Array($0) } } == sample.pairs.map(\.1))
    }

    @Test func damagedFieldsAreNilNotATrap() {
        let whole = FieldCodec.encode(HTTPFieldsCase(pairs: [("ETag", Array("\"abc\"".utf8))]).fields)
        for end in 1..<whole.count - 1 where end != 1 { #expect(FieldCodec.decode(whole.prefix(end)) == nil, "\(end)") }
        #expect(FieldCodec.decode(Data()) == nil)
        #expect(FieldCodec.decode(Data([1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])) == nil)
        #expect(FieldCodec.decode(Data([9])) == nil)
    }
}
