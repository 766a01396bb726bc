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

    // MARK: - Before

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

    // MARK: - After

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

// MARK: - Blobs

// Recovery of the blobs: copied when their content matches their name, with new reference counts.
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

/// The reason why a recovery was refused. The damaged directory is unchanged; at most an empty target directory was created.
package enum RecoveryRefusal: Error, Hashable, CustomStringConvertible {
    case noDatabase(String)
    case notEmpty(String)
    case within(String)
    case noRoom(needed: Int64, free: Int64)
    /// SQLite finds no schema in the file.
    case unreadable(String, detail: String)
    case newerSchema(found: Int, known: Int)

    package var description: String {
        switch self {
        case .noDatabase(let path): "\(path) is missing or empty: there is nothing to recover; restore it from a backup"
        case .notEmpty(let path): "\(path) is not empty; name a new or an empty directory"
        case .within(let path): "\(path) lies in the damaged directory, and nothing is written there; name one elsewhere"
        case .noRoom(let needed, let free): "a recovery takes up to \(needed) bytes, and \(free) are free; name a directory on another disk"
        case .unreadable(let path, let detail):
            "SQLite finds no schema in \(path) (\(detail)): its first pages are lost; take data.sqlite from a backup"
        case .newerSchema(let found, let known):
            "the database has schema \(found), this Rockpool knows up to \(known); recover it with the newer version"
        }
    }
}

/// The report of `rockpool doctor --recover`.
package struct RecoveryReport: Hashable, Sendable, Codable {
    package struct Table: Hashable, Sendable, Codable {
        package var name: String
        /// Rows in the new database.
        package var rows = 0
        /// Rows that were read but could not be inserted; they are in the file `unplaced`.
        package var unplaced = 0
        /// True if every page of the table could be read.
        package var isWhole = true
        /// The first ranges of keys under which rows may be missing; none where keys are not integers.
        package var unreadable: [String] = []
    }

    /// A body of an operation with a missing or damaged file.
    package struct LostBlob: Hashable, Sendable, Codable {
        package var sha256: String
        /// Public ids of the operations that reference the blob. They are kept and cannot be sent.
        package var operations: [String]
    }

    /// The damaged directory; not a byte of it was changed.
    package var from: String
    /// The new directory.
    package var into: String
    package var seconds: Double = 0
    package var tables: [Table] = []
    /// Operations in the new database, by state.
    package var operations: [String: Int] = [:]
    package var blobs = 0
    package var lostBlobs: [LostBlob] = []
    /// Blobs that no recovered operation references, kept in `unplaced-blobs`.
    package var unplacedBlobs = 0
    /// Names of other copied files.
    package var copied: [String] = []
    /// Path of the file of rows that could not be inserted, one JSON object per line; nil when there are none.
    package var unplaced: String?
    /// Messages for people about failed steps.
    package var errors: [String] = []
    /// Messages for people about repairs.
    package var notes: [String] = []
    /// Messages for people about the next steps.
    package var next: [String] = []

    /// True if nothing is known to be missing.
    package var isWhole: Bool {
        tables.allSatisfy { $0.isWhole && $0.unplaced == 0 } && lostBlobs.isEmpty && unplacedBlobs == 0 && errors.isEmpty
    }
}
