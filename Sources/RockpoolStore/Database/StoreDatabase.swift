// Opening of both databases: pragmas, identity, schema version, and the files that are refused (docs/storage.md#database-rules).
import CSQLiteCalls
import Dispatch
import FoundationEssentials
import GRDB
import RockpoolCore

/// The properties that distinguish one of the two databases from any other SQLite file.
struct DatabaseIdentity: Sendable {
    /// `PRAGMA application_id`: distinguishes this database from other SQLite files.
    var applicationID: Int32
    /// The schema, one step per version: `migrations[n]` migrates from version n to n + 1.
    var migrations: [@Sendable (Database) throws -> Void]
    /// FULL for the data store (it acknowledges a write only after an fsync), NORMAL for the cache.
    var synchronous: Synchronous

    enum Synchronous: Int, Sendable { case normal = 1, full = 2 }
}

/// The reason why a database was not opened.
enum DatabaseRefusal: Error, Equatable {
    /// Not a database, a database of another application, or damaged.
    case corrupt(String)
    /// Written by a newer Rockpool; nothing was changed.
    case newerSchema(found: Int, known: Int)
}

/// An open database: one connection that writes and checkpoints, and a few read-only connections.
struct StoreDatabase: Sendable {
    /// Bytes of a page, chosen for rows with small bodies, the most frequent content of the cache.
    static let pageSize: Int64 = .kib(8)
    /// Bytes that a page takes in the write-ahead log: the page and its frame header.
    static let frameSize: Int64 = pageSize + 24

    let path: String
    let pool: DatabasePool
    /// What seals and opens bodies in SQL.
    let sealing = SealFunctions()
    /// Number of frames after which the log is checkpointed.
    let checkpointFrames: Int
    /// Pages that one incremental vacuum step moves: half as many as a checkpoint copies.
    var pagesPerStep: Int { max(16, checkpointFrames / 2) }

    /// Returns the number of frames for a directory with this limit.
    static func checkpointFrames(for limit: ByteCount) -> Int { Int(min(1000, max(32, limit.bytes / 64 / pageSize))) }

    /// Opens or creates the file. A non-empty log means that the last stop was not clean; then the pages are checked.
    ///
    /// - Parameter stoppedCleanly: other evidence about the last stop; false forces the page check.
    /// - Parameter limit: the limit of the directory; a small one gets a shorter log.
    /// - Parameter ticks: the source of `tick()` in SQL.
    /// - Parameter checksPages: false when the caller checks the pages later with `PageCheck`.
    /// - Throws: `DatabaseRefusal`, or GRDB's `DatabaseError` for errors of the file system.
    init(
        path: String, identity: DatabaseIdentity, limit: ByteCount, ticks: Ticks = Ticks(), stoppedCleanly: Bool = true,
        checksPages: Bool = true
    )
        throws
    {
        self.path = path
        _ = Self.keepsJournalsInMemory
        checkpointFrames = Self.checkpointFrames(for: limit)
        let stoppedCleanly = stoppedCleanly && (FileStatus.of(path + "-wal")?.size ?? 0) == 0
        do {
            // SQLite deletes a log that lies beside an empty or missing database file, and the commits in it. SQLite itself never leaves
            // this state; a user who deletes the cache's database may.
            let size = FileStatus.of(path)?.size
            if (size ?? 0) == 0, size != nil || identity.synchronous == .full, (FileStatus.of(path + "-wal")?.size ?? 0) > 0 {
                throw DatabaseRefusal.corrupt(size == nil ? "the file is gone, its log is not" : "the file is empty, its log is not")
            }
            if (FileStatus.of(path + "-journal")?.size ?? 0) > 0 { try Self.rollBack(path) }
            if (FileStatus.of(path)?.size ?? 0) > 0 { try Self.inspect(path, identity, checkingPages: checksPages && !stoppedCleanly) }
            pool = try DatabasePool(path: path, configuration: Self.configuration(checkpointFrames: checkpointFrames, sealing, ticks))
            try Self.checkLog(of: path)
            try pool.writeWithoutTransaction { db in
                // Before the migration, which drops tables. An SQLite built with a stricter default keeps it.
                if identity.synchronous == .full, try Int.fetchOne(db, sql: "PRAGMA secure_delete") == 0 {
                    try db.execute(sql: "PRAGMA secure_delete = FAST")
                }
                try Self.migrate(in: db, identity, path: path)
                try ConstantLists.unroll(in: db)
                // GRDB's WAL setup lowers `synchronous` to NORMAL after `prepareDatabase`.
                try db.execute(sql: "PRAGMA synchronous = \(identity.synchronous.rawValue)")
            }
        } catch let error as DatabaseError where error.saysCorrupt {
            throw DatabaseRefusal.corrupt(error.message ?? "\(error.resultCode)")
        }
    }

    /// Bytes of a statement's or savepoint's journal that stay in memory. By default, what changes more than eight pages writes and reads
    /// a temporary file: half of the system calls of a replay. SQLite writes a journal that has become longer to a file in pieces of this
    /// size, and its `unixWrite` takes a piece of 128 KiB or more for a full disk.
    private static let journalBytes = ByteCount.kib(120)

    /// True if SQLite has taken that limit, which it does only before the first database is opened.
    static let keepsJournalsInMemory = rp_keep_statement_journals(Int32(journalBytes.bytes)) == 0

    /// Fails when the database has no write-ahead log. If a sync fails during the switch to WAL mode, the pragma reports WAL although the
    /// file has no log; a commit is then not durable when it returns, whatever `synchronous` is. GRDB always writes something to a new log,
    /// so a valid log is never empty.
    private static func checkLog(of path: String) throws {
        guard (FileStatus.of(path + "-wal")?.size ?? 0) > 0 else {
            throw DatabaseError(resultCode: .SQLITE_IOERR, message: "its write-ahead log could not be made: look at the disk")
        }
    }

    /// Seconds that a connection waits for a lock held by another connection.
    static let busySeconds = 5

    private static func configuration(checkpointFrames: Int, _ sealing: SealFunctions, _ ticks: Ticks) -> GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.label = "rockpool"
        configuration.busyMode = .timeout(TimeInterval(busySeconds))
        // GRDB's own default is a nice value below 0, which a service may not have.
        configuration.qos = .default
        configuration.maximumReaderCount = 3
        configuration.foreignKeysEnabled = true
        configuration.prepareDatabase { db in
            sealing.add(to: db)
            db.add(function: DatabaseFunction("tick", argumentCount: 0) { _ in ticks.next().number })
            try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
            if db.configuration.readonly {
                // Before SQLite 3.51.3, two connections that checkpoint can corrupt the log: only the writer may checkpoint.
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
            } else {
                // Both pragmas must precede the first table; they have no effect on an existing file.
                try db.execute(sql: "PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = INCREMENTAL")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = \(checkpointFrames)")
            }
        }
        return configuration
    }

    /// Opens an additional read-only connection.
    static func reader(_ path: String) throws -> DatabaseQueue {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        configuration.qos = .default
        configuration.busyMode = .timeout(TimeInterval(busySeconds))
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0") }
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Rolls back a hot journal. The switch to WAL mode is one rollback-journal transaction, and a crash in it leaves its journal. Only a
    /// writing connection may roll it back; a read-only connection fails until then.
    private static func rollBack(_ path: String) throws {
        let database = try DatabaseQueue(path: path)
        _ = try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master") }
        try database.close()
    }

    /// Checks the file before anything is changed: GRDB writes to a file as soon as it opens it for writing, and a refused file must stay
    /// as it was.
    private static func inspect(_ path: String, _ identity: DatabaseIdentity, checkingPages: Bool) throws {
        let database = try reader(path)
        try database.read { db in
            try checkIdentity(in: db, identity)
            if checkingPages { try checkPages(in: db) }
        }
        try database.close()
    }

    static func checkIdentity(in db: Database, _ identity: DatabaseIdentity) throws {
        let found = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") ?? 0
        guard found == identity.applicationID || (found == 0 && tables == 0) else {
            throw DatabaseRefusal.corrupt("application_id is \(found): not a database of this kind")
        }
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard version <= identity.migrations.count else {
            throw DatabaseRefusal.newerSchema(found: version, known: identity.migrations.count)
        }
    }

    private static func checkPages(in db: Database) throws {
        let verdict = try String.fetchOne(db, sql: "PRAGMA quick_check(1)") ?? "no answer"
        guard verdict == "ok" else { throw DatabaseRefusal.corrupt(verdict) }
    }

    /// Migrates the schema with all steps in one transaction; the data store's database is copied first, because its content must not be
    /// lost.
    private static func migrate(in db: Database, _ identity: DatabaseIdentity, path: String) throws {
        let version = max(0, try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0)
        guard version < identity.migrations.count else { return }
        if version > 0, identity.synchronous == .full { try SchemaCopy(of: path).make(in: db, version: version) }
        try db.inTransaction(.immediate) {
            for step in identity.migrations[version...] { try step(db) }
            if version > 0 { FailPoint.migrating.reached() }
            try db.execute(sql: "PRAGMA application_id = \(identity.applicationID)")
            try db.execute(sql: "PRAGMA user_version = \(identity.migrations.count)")
            return .commit
        }
    }
}

extension Database {
    /// Returns up to `count` free pages to the file system. The file shrinks at the next checkpoint, which a reader may delay.
    func giveBack(pages count: Int, copyingBack: Bool = true) throws {
        try execute(sql: "PRAGMA incremental_vacuum(\(count))")
        if copyingBack { _ = try checkpoint(.passive) }
    }

    /// Checkpoints the log and truncates it to zero without waiting for readers.
    /// - Throws: SQLITE_BUSY when a reader still uses the log; the frames that could be copied are.
    func truncateLog() throws {
        try execute(sql: "PRAGMA busy_timeout = 0")
        defer { try? execute(sql: "PRAGMA busy_timeout = \(StoreDatabase.busySeconds * 1000)") }
        _ = try checkpoint(.truncate)
    }
}

extension DatabaseError {
    /// True if the file itself is bad, as opposed to the disk or the statement.
    var saysCorrupt: Bool {
        [.SQLITE_NOTADB, .SQLITE_CORRUPT].contains(resultCode)
    }

    /// True if the disk was full.
    var saysFull: Bool { resultCode == .SQLITE_FULL }
}
