// The data store: an acknowledged write is never lost (docs/storage.md#directories, docs/storage.md#durability).
import FoundationEssentials
import GRDB
package import Logging
package import RockpoolCore
import Synchronization

/// The outbox on disk, with its blobs, secrets, reserve and lock.
package final class DataStore: Sendable {
    struct Held {
        var nextFile: UInt64 = 0
        /// Names in `blobs/tmp/` that a writer owns.
        var spools: Set<String> = []
        /// Complete blobs that no row references yet.
        var unattached: [String: Int] = [:]
        /// Number of temporaries removed when the store was opened.
        var tidied = 0
        /// Upstreams that have accepted any credential.
        var takingCredentials: Set<String> = []
    }

    let directory: String
    let settingsInForce: Mutex<StorageSettings>
    /// The settings in force: a reload changes their limits.
    var settings: StorageSettings { settingsInForce.withLock { $0 } }
    let clock: @Sendable () -> Timestamp
    /// Counts what the server asks, answers and writes.
    package let ticks: Ticks
    let logger: Logger
    let lock: StoreLock
    let database: StoreDatabase
    let queue: CommitQueue
    /// True if this database is a replica of a fleet's.
    package var isOfFleet: Bool { replica != nil }
    /// This database as a replica of a fleet's; nil without a fleet.
    let replica: (any FleetMember)?
    /// Where its file was opened.
    let place: DatabasePlace
    let footprint: Footprint
    let reserve: ReserveFile
    let lanes = FileLanes(label: "rockpool.data.files")
    /// The live writes under way that are rows, and those in slots of a file.
    let liveWrites: LiveWriteMarks
    let liveFile: LiveWriteFile
    let held = Mutex(Held())
    let health = Mutex(StorageHealth())
    let empty = EmptyOutbox()
    let disk = DiskOfTurn()
    let rare = RareOperations()
    let clientKeys = KeptClientKeys()
    /// The mapping of every local id.
    package let localIDs = LocalIDTable()
    let installKey: [UInt8]
    /// Seals queued bodies, and opens those that were sealed; the cache's too.
    package let seal: BodySeal

    /// The number of turns of the writer since the store was opened. While it stays the same, every read of the outbox returns the same.
    package var commits: Int { queue.turns }
    /// Number of files removed when the store was opened.
    package var tidied: Int { held.withLock(\.tidied) }

    /// The smallest useful `data_limit` (docs/reference/configuration.md#storage).
    package static let minimumLimit = ByteCount.mb(8)
    /// Maximum bytes of request and response bodies that are stored in their row.
    package static let inlineLimit = Int.mib(1)

    /// Takes the lock and opens the store; creates its directory (mode 0700) when it does not exist.
    ///
    /// After a crash every operation in flight, and every live write that was under way, becomes `uncertain`, reason `crashed`: it may have
    /// been sent.
    /// - Parameters:
    ///   - outbox: nil to keep the outbox where it is, without taking part in a fleet.
    ///   - mayBeginAnew: false to refuse a directory that was in use and has no database, instead of a warning.
    /// - Throws: `.lost` then; `.locked`, `.readableByOthers`, `.corrupt` or `.newerSchema` (the file is left unchanged), `.unavailable`.
    package static func open(
        directory: String, settings: StorageSettings, outbox: OutboxSettings? = OutboxSettings(), mayBeginAnew: Bool = true,
        clock: @escaping @Sendable () -> Timestamp, ticks: Ticks = Ticks(), logger: Logger
    ) throws(DataStoreError) -> DataStore {
        let path = "\(directory)/data.sqlite"
        do {
            try Paths.makeDirectories(directory)
            if let status = FileStatus.following(directory), status.permissions & 0o077 != 0 {
                throw DataStoreError.readableByOthers(path: directory)
            }
            let key = "\(directory)/ca/ca.key"
            if let status = FileStatus.of(key), status.permissions & 0o077 != 0 { throw DataStoreError.readableByOthers(path: key) }
            let lock = try StoreLock.acquire(directory)
            try Paths.makeDirectory("\(directory)/blobs")
            try Paths.makeDirectory("\(directory)/blobs/tmp")
            let temporaries = Paths.names(in: "\(directory)/blobs/tmp").count { Paths.remove("\(directory)/blobs/tmp/\($0)") }
            let isLacking = lacksDatabase(in: directory)
            if isLost(in: directory) || isLacking && !mayBeginAnew { throw DataStoreError.lost(path: path) }
            if isLacking {
                logger.warning(
                    "there is no data.sqlite, although this directory was in use: the outbox is empty", metadata: ["path": "\(path)"])
            }
            let stoppedCleanly = try CleanShutdownMarker(directory: directory).take()
            let database = try StoreDatabase(
                path: path, identity: DataSchema.identity, limit: Self.limit(settings), ticks: ticks, stoppedCleanly: stoppedCleanly)
            try database.beginRun(ticks)
            // Makes the name of the file survive a power failure as well.
            try Paths.synchronizeDirectory(directory)
            let store = try DataStore(
                directory: directory, settings: settings, outbox: outbox, clock: clock, ticks: ticks, logger: logger, lock: lock,
                database: database)
            store.held.withLock { $0.tidied = temporaries }
            return store
        } catch let error as DataStoreError {
            throw error
        } catch let refusal as DatabaseRefusal {
            switch refusal {
            case .corrupt(let detail): throw .corrupt(path: path, detail: detail)
            case .newerSchema(let found, let known): throw .newerSchema(path: path, found: found, known: known)
            }
        } catch let error as DatabaseError where error.saysCorrupt {
            throw .corrupt(path: path, detail: error.message ?? "\(error.resultCode)")
        } catch let error where StorageHealth.Fault(error) == .full {
            // What waits can be delivered only by a store that is open.
            guard Paths.remove("\(directory)/reserve") else {
                throw .unavailable("cannot open \(directory): its disk is full; free some space on it, then start again")
            }
            logger.error("the disk is full; the reserve is given up to open the store")
            return try open(directory: directory, settings: settings, outbox: outbox, clock: clock, ticks: ticks, logger: logger)
        } catch {
            throw .unavailable("cannot open \(directory): \(error)")
        }
    }

    /// Now, by the clock and in the order of ticks.
    package func moment() -> Moment { Moment(at: clock(), tick: ticks.next()) }

    /// Keeps the number of the run, which another database may have raised since this one was opened.
    package func keepRun() throws { try database.beginRun(ticks) }

    /// Runs a read. Damage found only now is reported in the same way as at the start, with the command for recovery.
    /// - Throws: `DataStoreError.corrupt`, else `DatabaseError`.
    func reading<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        do {
            return try await database.pool.read(body)
        } catch let error as DatabaseError where error.saysCorrupt {
            throw DataStoreError.corrupt(path: database.path, detail: error.message ?? "\(error.resultCode)")
        }
    }

    static func limit(_ settings: StorageSettings) -> ByteCount { max(settings.dataLimit, minimumLimit) }

    private init(
        directory: String, settings: StorageSettings, outbox: OutboxSettings?, clock: @escaping @Sendable () -> Timestamp, ticks: Ticks,
        logger: Logger, lock: StoreLock, database: StoreDatabase
    ) throws {
        let limit = Self.limit(settings)
        let groupWeight = min(.mib(4), max(.mib(1), limit.bytes / 32))
        let footprint = Footprint(limit: limit, database: database, groupWeight: groupWeight)
        self.directory = directory
        settingsInForce = Mutex(settings)
        self.clock = clock
        self.ticks = ticks
        self.logger = logger
        let place = DatabasePlace(path: database.path)
        (self.lock, self.database, self.footprint, self.place) = (lock, database, footprint, place)
        reserve = ReserveFile(directory: directory, size: min(.mib(32), limit.bytes / 10), footprint: footprint)
        let hadKey = FileStatus.of("\(directory)/install-key") != nil
        installKey = try Secrets.installKey(in: directory)
        seal = try BodySeal(installKey: installKey, settings)
        database.sealing.use(seal)
        (liveWrites, liveFile) = (LiveWriteMarks(directory: directory), LiveWriteFile(directory: directory))
        replica = try Self.replica(
            for: outbox, of: database.pool, directory: directory, footprint: footprint, localIDs: localIDs, clock: clock, logger: logger)
        queue = CommitQueue(pool: database.pool, groupWeight: groupWeight, partner: replica, place: place) { [rare] db in
            rare.committed()
            footprint.measure(in: db)
            if footprint.logIsOverBudget { try? db.truncateLog() }
        }
        footprint.addFixed(Self.otherBytes(in: directory))
        // Few files, because only bodies too large for a row are blobs.
        footprint.addFiles(
            Paths.names(in: "\(directory)/blobs").filter { $0 != "tmp" }
                .reduce(0) { $0 + (FileStatus.of("\(directory)/blobs/\($1)")?.allocated ?? 0) })
        try checkKeys()
        try takeOver(hadKey: hadKey)
        reserve.fill(minFree: settings.minFree.bytes)
        try join(outbox)
    }

    /// Brings the database to the schema of this version, and takes over what an earlier run has left.
    private func takeOver(hadKey: Bool) throws {
        let now = clock()
        // A damaged page is reported by the page check; until then the sums are empty, so that no write is refused.
        let sums = (try? database.pool.read(ShareSums.counted)) ?? [:]
        var ofLostOwners = 0
        let unused = try database.pool.writeWithoutTransaction { db in
            footprint.measure(in: db)
            var unused: [String] = []
            try db.inTransaction(.immediate) {
                try DataSchema.guardTransitions(in: db)
                try DataSchema.indexOpenWrites(in: db)
                for mark in seal.knownMarks {
                    try db.execute(sql: "INSERT INTO total VALUES (?, 1) ON CONFLICT DO NOTHING", arguments: [mark])
                }
                ofLostOwners = try Self.noteKey(installKey, isNew: !hadKey, in: db, now: now)
                // In a fleet, both belong to a transaction of the fleet.
                if replica == nil {
                    try Self.recover(in: db, now: now)
                    try Self.renewLanes(in: db)
                }
                try ShareSums.begin(in: db, with: sums)
                if let replica { try replica.begin(on: db) }
                try rare.begin(on: db)
                try clientKeys.begin(on: db)
                // In a fleet, what they become is handed over like a write that was accepted while the shared database was away.
                try replica?.beginAlone(in: db)
                unused = try adoptLiveWrites(in: db, now: now)
                try replica?.endAlone(in: db)
                try localIDs.load(in: db)
                let upstreams = try Self.upstreamsTakingCredentials(in: db)
                held.withLock { $0.takingCredentials = upstreams }
                return .commit
            }
            return unused
        }
        liveFile.begin()
        Self.warn(ofLostOwners: ofLostOwners, in: directory, logger: logger)
        for name in unused {
            let allocated = FileStatus.of(blobPath(name))?.allocated ?? 0
            if Paths.remove(blobPath(name)) { footprint.addFiles(-allocated) }
        }
    }

    /// - Throws: `.unknownKey` when a body is sealed under a key that is not at hand: an acknowledged write could not be sent.
    private func checkKeys() throws {
        let names = (try? database.pool.read { try String.fetchAll($0, sql: "SELECT name FROM total WHERE name LIKE 'key-file %'") }) ?? []
        // Every body is read only if one may be sealed under another key file.
        guard names.contains(where: { name in !seal.knownMarks.contains(name) }) else { return }
        let first = [("op", "body"), ("op", "resp_body"), ("snapshot", "body"), ("live_write", "body")].map { table, column in
            "SELECT DISTINCT substr(\(column), 1, 12) AS first FROM \(table)"
        }
        let sql = "SELECT first FROM (\(first.joined(separator: " UNION "))) WHERE substr(first, 1, 8) = ?"
        // The page check reports a damaged page.
        let rows = (try? database.pool.read { try Data.fetchAll($0, sql: sql, arguments: [BodySeal.magic.data]) }) ?? []
        let files = Paths.names(in: "\(directory)/blobs").compactMap { name in
            try? FileBytes.read(blobPath(name), from: 0, upTo: BodySeal.magic.count + BodySeal.idLength)
        }
        let sealed = rows.map { Array($0) } + (files + liveFile.interrupted.map(\.values)).filter { BodySeal.isSealed($0) }
        guard sealed.allSatisfy({ seal.knows(BodySeal.keyID(of: $0)) }) else { throw DataStoreError.unknownKey(path: database.path) }
    }

    private static func otherBytes(in directory: String) -> Int64 {
        let counted = ["blobs", "reserve", "data.sqlite", "data.sqlite-wal", "data.sqlite-shm"]
        let rest = Paths.names(in: directory).filter { !counted.contains($0) }
        return ([directory, "\(directory)/blobs", "\(directory)/blobs/tmp"] + rest.map { "\(directory)/\($0)" })
            .reduce(0) { $0 + (FileStatus.of($1)?.allocated ?? 0) }
    }

    /// Leaves an empty log and the mark of a clean stop, and releases the lock.
    package func close() async {
        await deleteEndedLiveWrites()
        await replica?.leave()
        await queue.close()
        let (database, directory) = (database, directory)
        try? await lanes.run(0) {
            let isCut = (try? database.pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }) != nil
            try database.pool.close()
            guard isCut else { return }
            SchemaCopy(of: database.path).remove()
            try CleanShutdownMarker(directory: directory).leave()
        }
        lock.release()
    }
}

// MARK: - Errors

/// An error of the data store. A call that throws one has changed nothing (docs/storage.md#durability, docs/storage.md#faults).
package enum DataStoreError: Error, Equatable {
    /// Another server uses the store. `pid` is read from its lock file, nil when unreadable.
    case locked(pid: Int32?)
    /// The directory or a secret in it is accessible to other users.
    case readableByOthers(path: String)
    /// The admin token in the file is too short and could be guessed.
    case shortToken(path: String)
    /// `install-key` holds no key: it is empty, or was replaced.
    case noKey(path: String)
    /// The secret in `storage.key_file` is one that can be guessed.
    case shortKey(path: String)
    /// Queued bodies are sealed under a key that is neither the installation's own nor that of `storage.key_file`.
    case unknownKey(path: String)
    /// The database is damaged; nothing was changed.
    case corrupt(path: String, detail: String)
    /// The database of a directory that was in use is missing or empty; nothing was changed.
    case lost(path: String)
    /// The database was written by a newer Rockpool.
    case newerSchema(path: String, found: Int, known: Int)
    /// No space under `data_limit` (507).
    case full
    /// No space on the disk, whatever `data_limit` leaves (507).
    case diskFull
    /// The writer's share of `data_limit` is used up, by its own operations or by those of others in the same share (507).
    case shareUsedUp(OutboxShare)
    /// The upstream's own part of `data_limit` (`upstreams[].data_limit`) is used up (507).
    case upstreamFull(name: String)
    /// A telemetry write is larger than what its route's `limit` lets wait at all (507).
    case queueFull(name: String, limit: ByteCount)
    /// This principal has used this client key before, for the named operation (422, or the response of that operation).
    case duplicateKey(id: String)
    case notFound(id: String)
    /// The operation that a new one depends on does not exist (400).
    case unknownDependency(id: String)
    /// The transition between these states is not permitted (409).
    case illegal(from: OperationState, to: OperationState)
    /// Other operations need this one (409).
    case needed(by: [OperationLink])
    /// No conflict has this id (404).
    case conflictNotFound(id: String)
    /// The conflict was decided before (409).
    case conflictDecided(id: String)
    /// The disk or the database failed (503).
    case unavailable(String)
    /// The fleet's database refuses the change itself, and would again (503).
    case refused(String)
    /// The fleet's database is away, so that nothing shared can change; if the detail says so, it may have kept what was asked for (503).
    case away(String)
}

extension DataStoreError: CustomStringConvertible {
    /// The message for people, with the remedy.
    package var description: String {
        switch self {
        case .locked(let pid?):
            "another Rockpool (pid \(pid)) uses this state directory; stop it or choose another directory"
        case .locked(pid: nil): "a command of Rockpool, or one in another container, uses this state directory; try again when it has ended"
        case .readableByOthers(let path): "\(path) can be read by others; run: chmod go-rwx '\(path)'"
        case .shortToken(let path):
            "\(path) holds fewer than \(DataStore.leastTokenBytes) characters; remove it, and a new token is made"
        case .noKey(let path):
            """
            \(path) is no key of an installation; restore it from a backup, or remove it: with a new one, queued writes wait for their \
            former owners for ever
            """
        case .shortKey(let path):
            "\(path) (storage.key_file) holds fewer than \(BodySeal.leastKeyBytes) characters; make one with: openssl rand -hex 32"
        case .unknownKey(let path):
            "queued bodies in \(path) are sealed under a key that is not at hand; set storage.key_file to the file that was used before"
        case .corrupt(let path, let detail):
            "\(path) is damaged (\(detail)) and was left untouched; copy what can be read into a new directory: rockpool doctor --recover DIR"
        case .lost(let path):
            """
            \(path) is missing or empty, but its directory was in use; restore it from a backup, or, to begin with an empty outbox, move it \
            and blobs/ elsewhere
            """
        case .newerSchema(let path, let found, let known):
            "\(path) has schema \(found), this Rockpool knows up to \(known); run the newer version again"
        case .full: "the outbox has no room left"
        case .diskFull: "the disk of the state directory is full"
        case .shareUsedUp(let share): "\(share.words) is used up"
        case .upstreamFull(let name): "the space for queued writes of upstream \(name) (its data_limit) is used up"
        case .queueFull(let name, let limit): "it is larger than the limit (\(limit)) of its telemetry route at upstream \(name)"
        case .duplicateKey(let id): "the key was used before, for operation \(id)"
        case .notFound(let id): "there is no operation \(id)"
        case .unknownDependency(let id): "there is no operation \(id) to wait for"
        case .illegal(let from, let to): "an operation that is \(from.rawValue) cannot become \(to.rawValue)"
        case .needed(let others): others.count.counted("later operation needs", "later operations need") + " this one"
        case .conflictNotFound(let id): "there is no conflict \(id)"
        case .conflictDecided(let id): "conflict \(id) has been decided already"
        case .unavailable(let detail): detail
        case .refused(let detail): "the fleet's database does not take this: \(detail)"
        case .away(let detail): "the fleet's database is away: \(detail)"
        }
    }

    /// True if there is no room, under the limit or on the disk.
    package var isNoRoom: Bool { self == .full || self == .diskFull }
}

// MARK: - The network switch

// The network switch as set by hand, which survives every restart (docs/reference/behaviour.md#network-switch `network`).
extension DataStore {
    private static let switchName = "network.json"

    /// Returns the switch set by hand; nil when none was set.
    package func networkSwitch() -> NetworkSwitch? {
        let known = Self.storedSwitch(in: directory)
        if known?.isDamaged == true {
            logger.error(
                "the network switch cannot be read: nothing is sent until it is set; run: rockpool network auto",
                metadata: ["path": "\(directory)/\(Self.switchName)"])
        }
        return known?.value
    }

    /// Returns the switch of a stopped server.
    /// - Parameter directory: the state directory.
    package static func networkSwitch(in directory: String) -> NetworkSwitch? { storedSwitch(in: directory)?.value }

    /// A switch that cannot be read may have been `offline`, which promises that nothing is sent.
    private static func storedSwitch(in directory: String) -> (value: NetworkSwitch, isDamaged: Bool)? {
        let path = "\(directory)/\(switchName)"
        guard FileStatus.of(path) != nil else { return nil }
        let value = (try? FileBytes.read(path)).flatMap { try? JSONValue.parse($0) }.flatMap { NetworkSwitch($0) }
        return value.map { ($0, false) } ?? (NetworkSwitch(mode: .offline), true)
    }

    /// Stores the switch durably. A crash leaves either the old or the new file.
    /// - Throws: `FileError`.
    package func keep(_ networkSwitch: NetworkSwitch) throws {
        try Paths.replace(Self.switchName, in: directory, by: networkSwitch.document.serialized())
    }
}
