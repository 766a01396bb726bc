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
        reserve.fill(minFree: settings.minFree.bytes)
        try join(outbox)
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
