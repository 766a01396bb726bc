// Opening of both databases: pragmas, identity, schema version, and the files that are refused (docs/storage.md#database-rules).
import CSQLiteCalls
import Dispatch
import FoundationEssentials
import GRDB
import GRDBSQLite
import Glibc
import HTTPTypes
import RockpoolCore
import Synchronization

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

// MARK: - Runs

// The number of the run of a server, from which its ticks are counted (docs/outbox.md#ticks).
extension StoreDatabase {
    /// Begins a run after the last one that has used this database, and keeps its number.
    func beginRun(_ ticks: Ticks) throws {
        try pool.writeWithoutTransaction { db in
            ticks.begin(after: try Int64.fetchOne(db, sql: "SELECT number FROM run") ?? 0)
            try db.execute(sql: "UPDATE run SET number = ?", arguments: [ticks.run])
        }
    }
}

/// The place of an open file: what is committed into a file that has lost its name is lost with the process.
struct DatabasePlace: Sendable {
    let path: String
    private let identity: FileIdentity?

    /// - Parameter path: of a file that has just been opened.
    init(path: String) { (self.path, identity) = (path, FileStatus.of(path)?.identity) }

    /// Returns the error of a file that was removed or replaced since; nil if it is there.
    func confirm() -> DatabaseMoved? {
        guard let identity, FileStatus.of(path)?.identity != identity else { return nil }
        return DatabaseMoved(path: path)
    }
}

/// The file that is open is not the file of this name any more.
struct DatabaseMoved: Error, CustomStringConvertible {
    let path: String

    var description: String {
        "\(path) was removed or replaced while it is open: put the directory back, or restart Rockpool; nothing is accepted until then"
    }
}

/// The clean-stop mark of a store, the empty file `clean` in its directory: written last on close, removed first on open
/// (docs/storage.md#database-rules *quick_check*). An empty log is no proof of a clean stop: a kill right after a checkpoint leaves one
/// too.
struct CleanShutdownMarker: Sendable {
    let directory: String
    private var path: String { "\(directory)/clean" }

    /// Removes the mark, so that a later kill is detected at the next start.
    /// - Returns: true if the mark was present.
    func take() throws(FileError) -> Bool {
        guard FileStatus.of(path) != nil else { return false }
        guard Paths.remove(path) else { throw FileError(call: "unlink", path: path, code: errno) }
        try Paths.synchronizeDirectory(directory)
        return true
    }

    /// Creates the mark again, after everything else has been written.
    func leave() throws(FileError) {
        try Descriptor(path, O_WRONLY | O_CREAT).synchronize()
        try Paths.synchronizeDirectory(directory)
    }
}

/// A copy of the database taken before a migration and kept beside it until the next clean stop (docs/storage.md#database-rules), named
/// `data.sqlite.v2` after its schema version.
struct SchemaCopy: Sendable {
    private let path: String

    init(of path: String) { self.path = path }

    /// Makes a complete and durable copy; an incomplete copy left by a crash is replaced.
    /// - Throws: `NoRoomForCopy`, before anything is changed; `DatabaseError`, `FileError`.
    func make(in db: Database, version: Int) throws {
        let pages = try Int64.fetchOne(db, sql: "PRAGMA page_count") ?? 0
        let (needed, free) = (pages * StoreDatabase.pageSize + .mib(16), FreeSpace.bytes(at: path))
        guard free > needed else { throw NoRoomForCopy(needed: needed, free: free) }
        let target = "\(path).v\(version)"
        Paths.remove(target)
        try db.execute(sql: "VACUUM INTO ?", arguments: [target])
        try Descriptor(target, O_RDONLY).synchronize()
        try Paths.synchronizeDirectory(directory)
    }

    /// Removes the copies. Called after the migrated database was closed completely.
    func remove() {
        let name = path.split(separator: "/").last ?? ""
        for other in Paths.names(in: directory) where other.hasPrefix("\(name).v") && Int(other.dropFirst(name.count + 2)) != nil {
            Paths.remove("\(directory)/\(other)")
        }
    }

    private var directory: String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "." }
}

/// Thrown when the disk has no space for the copy that precedes a migration.
struct NoRoomForCopy: Error, CustomStringConvertible {
    var needed: Int64
    var free: Int64
    var description: String {
        "this version keeps a copy of the database before it changes it: that takes \(needed) bytes, and \(free) are free"
    }
}

/// How SQL statements seal and open the columns that hold bodies: the key is in no statement, and no row leaves the store sealed.
///
/// `sealed(x)`, `unsealed(x)` and `sealed_name(sha)` of bodies, `sealed_url(t)` and `unsealed_url(t)` of URLs and targets,
/// `sealed_fields(b)` and `unsealed_fields(b)` of fields, for the connections of one database. NULL stays NULL.
final class SealFunctions: Sendable {
    private let current = Mutex(BodySeal.off)

    /// Seals with `seal` from now on. The key is read after the database was opened: a key without a database is a sign of damage.
    func use(_ seal: BodySeal) { current.withLock { $0 = seal } }

    private var seal: BodySeal { current.withLock { $0 } }

    /// Adds the functions to a connection.
    func add(to db: Database) {
        add("sealed", to: db) { seal, bytes in seal.isSealing || BodySeal.isSealed(bytes) ? try seal.seal(bytes) : bytes }
        add("unsealed", to: db) { seal, bytes in BodySeal.isSealed(bytes) ? try seal.open(bytes) : bytes }
        add("sealed_name", to: db) { seal, hash in seal.isSealing ? seal.name(of: hash) : hash }
        add("sealed_fields", to: db) { seal, fields in try seal.sealed(fields: fields) }
        add("unsealed_fields", to: db) { seal, fields in seal.opened(fields: fields) }
        addText("sealed_url", to: db) { seal, url in try seal.sealed(url: url) }
        addText("unsealed_url", to: db) { seal, url in seal.opened(url: url) }
    }

    private func addText(_ name: String, to db: Database, _ body: @escaping @Sendable (BodySeal, String) throws -> String) {
        db.add(
            function: DatabaseFunction(name, argumentCount: 1) { [self] values in
                try values.first.flatMap { String.fromDatabaseValue($0) }.map { try body(seal, $0) }
            })
    }

    private func add(_ name: String, to db: Database, _ body: @escaping @Sendable (BodySeal, [UInt8]) throws -> [UInt8]) {
        db.add(
            function: DatabaseFunction(name, argumentCount: 1) { [self] values in
                try values.first.flatMap { Data.fromDatabaseValue($0) }.map { Data(try body(seal, Array($0))) }
            })
    }
}

extension BodySeal {
    /// Returns encoded fields of the outbox with their secrets sealed. Bytes that hold no fields stay.
    fileprivate func sealed(fields bytes: [UInt8]) throws -> [UInt8] {
        guard let fields = FieldCodec.decode(Data(bytes)), SecretFields.occur(in: fields) else { return bytes }
        return Array(FieldCodec.encode(try SecretFields.replacing(in: fields) { try sealed(secret: $0, .once) }))
    }

    /// Returns encoded fields with their secrets as they were.
    fileprivate func opened(fields bytes: [UInt8]) -> [UInt8] {
        // Of thousands of rows hardly one has it.
        guard bytes.contains(UInt8(ascii: "~")), let fields = FieldCodec.decode(Data(bytes)) else { return bytes }
        return Array(FieldCodec.encode(HTTPFields(fields.map { HTTPField(name: $0.name, lenientValue: opened($0.valueBytes, .once)) })))
    }
}

// MARK: - Progress

// Progress callbacks during a long SQL statement (sqlite3_progress_handler).
extension Database {
    /// Calls `mayGoOn` on this thread every few thousand virtual machine steps of the statements that `body` runs. When it returns false,
    /// the statement is rolled back and throws `SQLITE_INTERRUPT`.
    func watchingProgress<Result>(_ mayGoOn: () -> Bool, while body: () throws -> Result) rethrows -> Result {
        let connection = unsafe sqliteConnection
        return try withoutActuallyEscaping(mayGoOn) { mayGoOn in
            var mayGoOn = mayGoOn
            return try unsafe withUnsafeMutablePointer(to: &mayGoOn) { pointer in
                unsafe sqlite3_progress_handler(
                    connection, 2000,
                    { context in unsafe context?.assumingMemoryBound(to: (() -> Bool).self).pointee() == false ? 1 : 0 }, unsafe pointer)
                defer { unsafe sqlite3_progress_handler(connection, 0, nil, nil) }
                return try body()
            }
        }
    }
}

// MARK: - Faults

// Maps file and SQLite errors to faults of the disk (docs/storage.md#faults).
extension StorageHealth.Fault {
    /// Returns nil for errors that do not concern the disk: a constraint, a store that is being closed, a body that ended early.
    init?(_ error: any Error) {
        switch error {
        case let error as FileError:
            switch error.code {
            case ENOSPC, EDQUOT: self = .full
            case EROFS, EACCES, EPERM: self = .readOnly
            case ENOENT, EEXIST: return nil
            default: self = .failing
            }
        case is DatabaseMoved: self = .failing
        case let error as TransactionLost: self = error.isFull ? .full : .failing
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_FULL: self = .full
            case .SQLITE_READONLY, .SQLITE_PERM: self = .readOnly
            case .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_CORRUPT, .SQLITE_NOTADB: self = .failing
            default: return nil
            }
        default: return nil
        }
    }
}
