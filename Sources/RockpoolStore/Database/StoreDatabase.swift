// How both databases are opened: pragmas, identity, schema version, and what is refused (storage.md §1).
import FoundationEssentials
import GRDB
import RockpoolCore

/// What distinguishes one of the two databases from any other SQLite file.
struct DatabaseIdentity: Sendable {
    /// `PRAGMA application_id`: tells our file from somebody else's.
    var applicationID: Int32
    /// The schema, one step a version: `migrations[n]` leads from version n to n + 1.
    var migrations: [@Sendable (Database) throws -> Void]
    /// FULL for the data store (an acknowledgement follows an fsync), NORMAL for the cache.
    var synchronous: Synchronous

    enum Synchronous: Int, Sendable { case normal = 1, full = 2 }
}

/// Why a database was not opened.
enum DatabaseRefusal: Error, Equatable {
    /// Not a database, not ours, or damaged.
    case corrupt(String)
    /// Written by a newer Rockpool; nothing was changed.
    case newerSchema(found: Int, known: Int)
}

/// An open database: one connection that writes and checkpoints, a few that only read.
struct StoreDatabase: Sendable {
    /// Bytes of a page; rows with small bodies are what the cache holds most.
    static let pageSize: Int64 = 8192
    /// What a page costs in the write-ahead log: itself and the header of its frame.
    static let frameSize: Int64 = pageSize + 24

    let path: String
    let pool: DatabasePool
    /// What seals and opens bodies in SQL.
    let sealing = SealFunctions()
    /// Frames after which the log is copied back.
    let checkpointFrames: Int
    /// Pages that one step of giving back moves: half of what a checkpoint copies.
    var pagesPerStep: Int { max(16, checkpointFrames / 2) }

    /// Opens or creates the file. A log left behind means the last stop was not clean: then the pages are checked.
    ///
    /// - Parameter stoppedCleanly: what else is known of the last stop; false has the pages checked too.
    /// - Parameter limit: of the directory; a small one gets a shorter log.
    /// - Parameter checksPages: false when the caller looks at them later, by `PageCheck`.
    /// - Throws: `DatabaseRefusal`, or GRDB's `DatabaseError` for what the file system refused.
    init(path: String, identity: DatabaseIdentity, limit: ByteCount, stoppedCleanly: Bool = true, checksPages: Bool = true) throws {
        self.path = path
        checkpointFrames = Int(min(1000, max(32, limit.bytes / 64 / Self.pageSize)))
        let stoppedCleanly = stoppedCleanly && (FileStatus.of(path + "-wal")?.size ?? 0) == 0
        do {
            // SQLite deletes a log that it finds beside an empty file or none, and with it what was committed. It leaves neither so itself;
            // a user who deletes the database of a cache may.
            let size = FileStatus.of(path)?.size
            if (size ?? 0) == 0, size != nil || identity.synchronous == .full, (FileStatus.of(path + "-wal")?.size ?? 0) > 0 {
                throw DatabaseRefusal.corrupt(size == nil ? "the file is gone, its log is not" : "the file is empty, its log is not")
            }
            if (FileStatus.of(path + "-journal")?.size ?? 0) > 0 { try Self.rollBack(path) }
            if (FileStatus.of(path)?.size ?? 0) > 0 { try Self.inspect(path, identity, checkingPages: checksPages && !stoppedCleanly) }
            pool = try DatabasePool(path: path, configuration: Self.configuration(checkpointFrames: checkpointFrames, sealing))
            try Self.checkLog(of: path)
            try pool.writeWithoutTransaction { db in
                try Self.migrate(db, identity, path: path)
                // GRDB's WAL set-up lowers it to NORMAL after `prepareDatabase`.
                try db.execute(sql: "PRAGMA synchronous = \(identity.synchronous.rawValue)")
            }
        } catch let error as DatabaseError where error.saysCorrupt {
            throw DatabaseRefusal.corrupt(error.message ?? "\(error.resultCode)")
        }
    }

    /// A sync that fails while the file gets its log leaves it without one, though the pragma says that it has it; and without one a
    /// commit is not yet durable when it returns, whatever `synchronous` says. GRDB always writes something there.
    private static func checkLog(of path: String) throws {
        guard (FileStatus.of(path + "-wal")?.size ?? 0) > 0 else {
            throw DatabaseError(resultCode: .SQLITE_IOERR, message: "its write-ahead log could not be made: look at the disk")
        }
    }

    /// How long a connection waits for another.
    static let busySeconds = 5

    private static func configuration(checkpointFrames: Int, _ sealing: SealFunctions) -> GRDB.Configuration {
        var configuration = GRDB.Configuration()
        configuration.label = "rockpool"
        configuration.busyMode = .timeout(TimeInterval(busySeconds))
        configuration.maximumReaderCount = 3
        configuration.foreignKeysEnabled = true
        configuration.prepareDatabase { db in
            sealing.add(to: db)
            try db.execute(sql: "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
            if db.configuration.readonly {
                // Two connections that checkpoint can corrupt the log before SQLite 3.51.3: only the writer may.
                try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
            } else {
                // Both must come before the first table; on an existing file they change nothing.
                try db.execute(sql: "PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = INCREMENTAL")
                try db.execute(sql: "PRAGMA wal_autocheckpoint = \(checkpointFrames)")
            }
        }
        return configuration
    }

    /// One more connection, that only reads.
    static func reader(_ path: String) throws -> DatabaseQueue {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(TimeInterval(busySeconds))
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0") }
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// A file gets its log by one transaction of the older kind, and who dies in it leaves a journal. Only a connection that writes may
    /// undo that, and one that reads is refused meanwhile.
    private static func rollBack(_ path: String) throws {
        let database = try DatabaseQueue(path: path)
        _ = try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_master") }
        try database.close()
    }

    /// Looks before anything is changed: GRDB writes to a file as soon as it opens it for writing, and what is refused stays as it was.
    private static func inspect(_ path: String, _ identity: DatabaseIdentity, checkingPages: Bool) throws {
        let database = try reader(path)
        try database.read { db in
            try checkIdentity(db, identity)
            if checkingPages { try checkPages(db) }
        }
        try database.close()
    }

    static func checkIdentity(_ db: Database, _ identity: DatabaseIdentity) throws {
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

    private static func checkPages(_ db: Database) throws {
        let verdict = try String.fetchOne(db, sql: "PRAGMA quick_check(1)") ?? "no answer"
        guard verdict == "ok" else { throw DatabaseRefusal.corrupt(verdict) }
    }

    /// Brings the schema up to date, all steps in one transaction; after a copy when what is there must not be lost.
    private static func migrate(_ db: Database, _ identity: DatabaseIdentity, path: String) throws {
        let version = max(0, try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0)
        guard version < identity.migrations.count else { return }
        if version > 0, identity.synchronous == .full { try SchemaCopy(of: path).make(db, version: version) }
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
    /// Gives up to so many free pages back to the file system. The file shrinks when the log is copied back, which a reader may put off.
    func giveBack(pages count: Int, copyingBack: Bool = true) throws {
        try execute(sql: "PRAGMA incremental_vacuum(\(count))")
        if copyingBack { _ = try checkpoint(.passive) }
    }

    /// Copies the log back and cuts it to nothing, without waiting for anybody who still reads from it: the writer waits for no reader.
    /// - Throws: SQLITE_BUSY when somebody does; what could be copied is.
    func truncateLog() throws {
        try execute(sql: "PRAGMA busy_timeout = 0")
        defer { try? execute(sql: "PRAGMA busy_timeout = \(StoreDatabase.busySeconds * 1000)") }
        _ = try checkpoint(.truncate)
    }
}

extension DatabaseError {
    /// The file itself is bad, as opposed to the disk or the statement.
    var saysCorrupt: Bool {
        [.SQLITE_NOTADB, .SQLITE_CORRUPT].contains(resultCode)
    }

    /// There was no room for it.
    var saysFull: Bool { resultCode == .SQLITE_FULL }
}
