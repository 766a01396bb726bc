// Recovery of a damaged outbox, copied table by table into a new one; the original is left unchanged (docs/storage.md#recovery).
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// The state of one recovery.
struct Recovery {
    /// The directory of a stopped, damaged store.
    let directory: String
    /// The new directory.
    let target: String
    var report: RecoveryReport
    let unplaced: UnplacedRows
    /// Opens bodies that lie sealed, to check them.
    let seal: BodySeal

    init(from directory: String, into target: String, seal: BodySeal) {
        self.seal = seal
        self.directory = directory
        self.target = target
        report = RecoveryReport(from: directory, into: target)
        unplaced = UnplacedRows(in: target)
    }

    /// Runs the recovery; removes its output when it fails.
    mutating func run() throws -> RecoveryReport {
        try prepare()
        do {
            return try copyAll()
        } catch {
            for name in Paths.names(in: target) { try? FileManager.default.removeItem(atPath: "\(target)/\(name)") }
            throw error
        }
    }

    private mutating func copyAll() throws -> RecoveryReport {
        let began = ContinuousClock.now
        for name in ["blobs", "blobs/tmp"] { try Paths.makeDirectory("\(target)/\(name)") }
        let copy = "\(target)/.damaged"
        defer { try? FileManager.default.removeItem(atPath: copy) }
        let (source, version) = try openCopy(in: copy)
        let sink = try makeDatabase(version)
        try salvage(from: source, into: sink, isCurrent: version == DataSchema.identity.migrations.count)
        try source.close()
        try dropEndedLiveWrites(sink)
        try takeBlobs(sink)
        try count(sink)
        _ = try sink.pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        try sink.pool.close()
        for suffix in ["-wal", "-shm"] { Paths.remove("\(target)/data.sqlite\(suffix)") }
        try copyRest()
        try Descriptor("\(target)/data.sqlite", O_RDONLY).synchronize()
        try Paths.synchronizeDirectory(target)
        report.unplaced = unplaced.count > 0 ? unplaced.path : nil
        report.seconds = (ContinuousClock.now - began) / .seconds(1)
        advise()
        return report
    }

    // MARK: before

    private func prepare() throws {
        let path = "\(directory)/data.sqlite"
        guard let status = FileStatus.of(path), status.size > 0 else { throw RecoveryRefusal.noDatabase(path) }
        let (from, into) = (Self.resolved(directory), Self.resolved(target))
        guard into != from, !into.hasPrefix(from + "/") else { throw RecoveryRefusal.within(target) }
        guard Paths.names(in: target).isEmpty, FileStatus.of(target)?.isDirectory != false else { throw RecoveryRefusal.notEmpty(target) }
        try Paths.makeDirectories(target)
        guard unsafe chmod(target, 0o700) == 0 else { throw FileError(call: "chmod", path: target, code: errno) }
        // The copy that is read, the new database, its log; the blobs.
        let log = FileStatus.of(path + "-wal")?.size ?? 0
        let blobs = Paths.names(in: "\(directory)/blobs").reduce(0) { $0 + (FileStatus.of("\(directory)/blobs/\($1)")?.size ?? 0) }
        let (needed, free) = (4 * (status.size + log) + blobs, FreeSpace.bytes(at: target))
        guard free > needed else { throw RecoveryRefusal.noRoom(needed: needed, free: free) }
    }

    /// Returns the path with symbolic links resolved as far as it exists.
    private static func resolved(_ path: String) -> String {
        guard let found = unsafe realpath(path, nil) else {
            let cut = path.lastIndex(of: "/")
            let (parent, name) = cut.map { (String(path[..<$0]), String(path[path.index(after: $0)...])) } ?? (".", path)
            return parent.isEmpty ? "/\(name)" : "\(resolved(parent))/\(name)"
        }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }

    /// Opens a copy of the database, because reading a log writes beside it. A lost first page is restored in the copy.
    private mutating func openCopy(in copy: String) throws -> (DatabaseQueue, version: Int) {
        let (path, own) = ("\(directory)/data.sqlite", "\(copy)/data.sqlite")
        try Paths.makeDirectory(copy)
        for suffix in ["", "-wal"] where FileStatus.of(path + suffix) != nil {
            try FileManager.default.copyItem(atPath: path + suffix, toPath: own + suffix)
        }
        do {
            return try Self.opened(own, as: path)
        } catch let refusal as RecoveryRefusal {
            guard case .unreadable = refusal, try LostFirstPage(path: own).mend(isRight: { Self.isOurs(own) }) else { throw refusal }
            report.notes.append("the first page of the database was lost; it was made anew, from the schema")
            return try Self.opened(own, as: path)
        }
    }

    private static func isOurs(_ path: String) -> Bool {
        let found = try? opened(path, as: path).0.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM total WHERE name = 'delivered'") }
        return found == 1
    }

    /// Opens the copy. With `writable_schema`, SQLite skips a damaged row of the schema.
    /// - Parameter path: the name of the database in errors.
    private static func opened(_ own: String, as path: String) throws -> (DatabaseQueue, version: Int) {
        var configuration = GRDB.Configuration()
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase {
            try $0.execute(sql: "PRAGMA writable_schema = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = OFF")
        }
        do {
            let queue = try DatabaseQueue(path: own, configuration: configuration)
            let version = try queue.read { db in
                try StoreDatabase.checkIdentity(in: db, DataSchema.identity)
                guard try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'op')") == true else {
                    throw RecoveryRefusal.unreadable(path, detail: "no table op")
                }
                return try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            }
            guard version > 0 else { throw RecoveryRefusal.unreadable(path, detail: "user_version is \(version)") }
            return (queue, version)
        } catch DatabaseRefusal.newerSchema(let found, let known) {
            throw RecoveryRefusal.newerSchema(found: found, known: known)
        } catch DatabaseRefusal.corrupt(let detail) {
            throw RecoveryRefusal.unreadable(path, detail: detail)
        } catch let error as DatabaseError {
            throw RecoveryRefusal.unreadable(path, detail: error.message ?? "\(error.resultCode)")
        }
    }

    /// Creates the new database with the schema version of the old one; opening the store migrates it as it would have migrated the old
    /// one.
    private func makeDatabase(_ version: Int) throws -> StoreDatabase {
        let identity = DatabaseIdentity(
            applicationID: DataSchema.identity.applicationID, migrations: Array(DataSchema.identity.migrations[..<version]),
            synchronous: .full)
        let database = try StoreDatabase(path: "\(target)/data.sqlite", identity: identity, limit: .mb(64))
        database.sealing.use(seal)
        return database
    }

    // MARK: after

    /// Deletes live writes that had ended: their marks are not copied.
    private func dropEndedLiveWrites(_ sink: StoreDatabase) throws {
        let ended = EndedLiveWrites(directory: directory)
        try sink.pool.write { db in try LiveWriteRow.delete(LiveWriteRow.all(in: db).filter(ended.contains), in: db) }
    }

    private mutating func count(_ sink: StoreDatabase) throws {
        report.operations = try sink.pool.read { db in
            try Row.fetchAll(db, sql: "SELECT state, count(*) FROM op GROUP BY state").reduce(into: [:]) { counts, row in
                var columns = RowReader(row)
                counts[try columns.next(String.self)] = try columns.next()
            }
        }
    }

    /// Copies the certificate authority, the secrets, the live writes under way and the files of purged operations, readable by their owner
    /// only.
    private mutating func copyRest() throws {
        let names = Paths.names(in: directory).filter {
            $0.hasPrefix("purged-") || ["admin-token", "install-key", "live-writes"].contains($0)
        }
        let authority = Paths.names(in: "\(directory)/ca").map { "ca/\($0)" }
        if !authority.isEmpty { try Paths.makeDirectory("\(target)/ca") }
        for name in (names + authority).sorted() where FileStatus.of("\(directory)/\(name)")?.isFile == true {
            do {
                let file = try Descriptor.create("\(target)/\(name)")
                try file.write(all: try FileBytes.read("\(directory)/\(name)"))
                try file.synchronize()
                report.copied.append(name)
            } catch {
                report.errors.append("\(name): \(error)")
            }
        }
    }

    private mutating func advise() {
        if !report.isWhole {
            report.next.append("see above what is missing: an operation that is not there will not be sent")
        }
        if let path = report.unplaced { report.next.append("look through \(path): rows that were read and could not be placed") }
        report.next += [
            "move \(directory) away and keep it", "move \(target) into its place, and start Rockpool",
            "what was sent in the last moments before the damage may be sent once more, under the same Idempotency-Key",
        ]
    }
}

extension DataStore {
    /// Copies the readable data of a stopped server's damaged store into a new directory of mode 0700. Takes the store's lock; not a byte
    /// of the old directory is changed.
    /// - Throws: `RecoveryRefusal`, `.locked`, `FileError`, `DatabaseError`; the new directory is empty then.
    /// - Parameter seal: opens bodies that lie sealed, to check them; they are copied as they lie.
    package static func recover(from directory: String, into target: String, seal: BodySeal = .off) async throws -> RecoveryReport {
        try await FileLanes(label: "rockpool.recover", count: 1).run(0) {
            let lock = try StoreLock.toLook(directory)
            defer { lock?.release() }
            var recovery = Recovery(from: directory, into: target, seal: seal)
            return try recovery.run()
        }
    }
}
