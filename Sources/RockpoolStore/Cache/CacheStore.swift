// The cache: its directory may be deleted at any time, and never exceeds its limit (docs/storage.md#directories, docs/storage.md#ledger).
import GRDB
import Glibc
package import Logging
package import RockpoolCore
import Synchronization

/// Stored responses: an index in SQLite, small bodies in their rows, larger ones in files, hot ones in memory.
///
/// Only `lookupInMemory`, `bodyInMemory`, `searchRule`, `use` and the functions for hot replies may be called on an event loop; all others
/// leave it.
package final class CacheStore: Sendable {
    struct Counters {
        var evictions = 0
        var badBodies = 0
        /// True while files without a row may still exist: nothing is stored until they are removed, so that every byte is counted.
        var isSweeping = false
        /// Number of files removed when the cache was opened.
        var tidied = 0
        var nextFile: UInt64 = 0
        /// The earliest time of the next measurement of the disk.
        var nextBinding = Timestamp(milliseconds: .min)
        /// The numbers of the writers, which own names in `tmp/`.
        var writers: Set<UInt64> = []
        /// True while a scrub runs: two at once would correct the sums twice.
        var isScrubbing = false
        /// True while the clock is in doubt: no entry expires by age.
        var pausesExpiry = false
        /// Entries that left before they were read.
        var evictedKeys = EvictedKeys(capacity: CacheStore.evictedKeyCount)
    }

    struct Health {
        var machine = StorageHealth()
        var observer: (@Sendable (StorageHealth.Change) -> Void)?
    }

    let directory: String
    let settingsInForce: Mutex<StorageSettings>
    /// The settings in force: a reload changes their limits.
    var settings: StorageSettings { settingsInForce.withLock { $0 } }
    /// Seals private bodies, and opens those that were sealed.
    let seal: BodySeal
    /// Seals the secrets in the URLs of the index.
    package let index: IndexSeal
    let categories: [CacheCategory]
    let clock: @Sendable () -> Timestamp
    /// Counts what the server asks, answers and writes.
    package let ticks: Ticks
    let logger: Logger
    let database: StoreDatabase
    let queue: CommitQueue
    let invalidations = Invalidations()
    private let lock: CacheLock
    let footprint: Footprint
    let bodies: BodyFiles
    let room: SpaceQueue
    let memory: MemoryTier
    /// Pace of eviction, cleanup and compaction.
    let pace: BackgroundThrottle
    let searchRules: SearchRules
    /// What upstreams permit to pages of other origins, by upstream, origin and group of paths.
    let originGrants: SearchRules
    let lanes: FileLanes
    /// Revalidated responses whose rows are to be written, by their entries.
    let freshenings = Mutex<[Int64: Freshening]>([:])
    let recency = Mutex<[Int64: Uses]>([:])
    let counters: Mutex<Counters>
    /// Removes bodies without a row after an unclean stop.
    let sweep = Mutex<Task<Void, Never>?>(nil)
    /// Checks the pages of the database after an unclean stop.
    let pageCheck = Mutex<Task<Void, Never>?>(nil)
    /// The keys that may be stored, and the task that reads them.
    let keys = StoredKeys()
    let keyReading = Mutex<Task<Void, Never>?>(nil)
    let health = Mutex(Health())
    let keyEvents = Mutex(KeyEvents())
    /// The most bytes that the entries of an origin may take, by its URL.
    let quotas = Mutex<[String: Int64]>([:])
    /// The last comparison of the ledger with the disk.
    let lastAudit = Mutex<LedgerAudit?>(nil)

    /// Number of evicted keys that are remembered.
    static let evictedKeyCount = 16_384
    /// Maximum bytes of a body that is stored in its row.
    static let inlineLimit: Int64 = .kib(32)
    /// Maximum number of variants of one key; beyond it one that was not used again is removed, else the least recently used one
    /// (docs/security-model.md#keys-and-variants).
    static let variantLimit = 64
    /// Maximum number of parts of bodies stored under one key.
    static let partLimit = 256
    /// Maximum number of groups of one entry (RFC 9875 §2 requires at least 32); further groups are dropped.
    static let groupLimit = 128

    /// Opens the cache; creates its directory (mode 0700) when it does not exist.
    ///
    /// A database that is damaged, of another application or of a newer version is set aside and replaced by a new one. After an unclean
    /// stop, files without a row are swept in the background; until then nothing is stored.
    /// - Throws: `WritableByOthers`, `ForeignDirectory`, `CacheInUse`; `FileError` or GRDB's `DatabaseError` when the directory cannot be
    ///   used.
    package static func open(
        directory: String, settings: StorageSettings, categories: [CacheCategory], seal: BodySeal,
        clock: @escaping @Sendable () -> Timestamp, ticks: Ticks = Ticks(), logger: Logger
    ) throws -> CacheStore {
        try Paths.makeDirectories(directory)
        if let status = FileStatus.following(directory), status.permissions & 0o022 != 0 { throw WritableByOthers(directory: directory) }
        try CacheDirectoryTag.claim(directory)
        let lock = try CacheDirectoryTag.lock(in: directory)
        try Paths.makeDirectory("\(directory)/bodies")
        try Paths.makeDirectory("\(directory)/tmp")
        let temporaries = Paths.names(in: "\(directory)/tmp").count { Paths.remove("\(directory)/tmp/\($0)") }
        let path = "\(directory)/cache.sqlite"
        let isNew = FileStatus.of(path) == nil && Paths.names(in: "\(directory)/bodies").isEmpty
        let isMarked = try CleanShutdownMarker(directory: directory).take()
        // The mark proves nothing without the database: bodies may have been added after both were deleted.
        let isWhole = FileStatus.of(path) != nil && (FileStatus.of(path + "-wal")?.size ?? 0) == 0
        var stoppedCleanly = isNew || (isMarked && isWhole)
        var database: StoreDatabase
        do {
            if FileStatus.of(condemnation(in: directory)) != nil { throw DatabaseRefusal.corrupt("damage was found in it before") }
            database = try StoreDatabase(path: path, identity: CacheSchema.identity, limit: settings.cacheLimit, checksPages: false)
        } catch let refusal as DatabaseRefusal {
            let aside = try SetAside.move(path, now: clock())
            // The set-aside file counts against the limit: a large one would leave no space for the cache.
            if let size = FileStatus.of(aside)?.allocated, size > settings.cacheLimit.bytes / 4 { Paths.remove(aside) }
            logger.warning("cache database set aside, started afresh", metadata: ["file": "\(aside)", "why": "\(refusal)"])
            Paths.remove(condemnation(in: directory))
            database = try StoreDatabase(path: path, identity: CacheSchema.identity, limit: settings.cacheLimit)
            stoppedCleanly = false
        }
        // What is kept free for the log follows the limit that holds: a small disk would have room for little else.
        let limit = startLimit(of: database, in: directory, settings)
        if StoreDatabase.checkpointFrames(for: limit) < database.checkpointFrames {
            try database.pool.close()
            database = try StoreDatabase(path: path, identity: CacheSchema.identity, limit: limit, checksPages: false)
        }
        try database.beginRun(ticks)
        let store = try CacheStore(
            directory: directory, settings: settings, limit: limit, categories: categories, seal: seal, clock: clock, ticks: ticks,
            logger: logger, database: database, lock: lock, isSweeping: !stoppedCleanly)
        store.counters.withLock { $0.tidied = temporaries }
        if !stoppedCleanly {
            store.sweepInBackground()
            store.checkPagesInBackground()
        }
        store.readKeysInBackground()
        return store
    }

    private init(
        directory: String, settings: StorageSettings, limit: ByteCount, categories: [CacheCategory], seal: BodySeal,
        clock: @escaping @Sendable () -> Timestamp, ticks: Ticks, logger: Logger, database: StoreDatabase, lock: CacheLock, isSweeping: Bool
    ) throws {
        let groupWeight = min(.mib(4), max(.kib(256), limit.bytes / 64))
        let footprint = Footprint(limit: settings.cacheLimit, database: database, groupWeight: groupWeight)
        let bodies = BodyFiles(root: "\(directory)/bodies", footprint: footprint)
        self.directory = directory
        settingsInForce = Mutex(settings)
        self.categories = categories
        self.seal = seal
        index = IndexSeal(seal: seal)
        self.clock = clock
        self.ticks = ticks
        self.logger = logger
        self.database = database
        self.lock = lock
        self.footprint = footprint
        self.bodies = bodies
        room = SpaceQueue(footprint: footprint, bodies: bodies)
        let memory = MemoryTier(limit: settings.memoryLimit, index: index)
        self.memory = memory
        pace = BackgroundThrottle(clock: clock) { memory.lookups }
        // A damaged page of the rules costs only the rules, not the start; the check of all pages finds it (docs/storage.md#faults).
        searchRules = SearchRules(
            limit: Self.searchRuleLimit(settings.cacheLimit), stored: (try? database.pool.read(Self.storedSearchRules)) ?? [])
        originGrants = SearchRules(
            limit: Self.searchRuleLimit(settings.cacheLimit), stored: (try? database.pool.read(Self.storedOriginGrants)) ?? [])
        lanes = FileLanes(label: "rockpool.cache.files")
        counters = Mutex(Counters(isSweeping: isSweeping))
        queue = CommitQueue(pool: database.pool, groupWeight: groupWeight) { db in
            bodies.unlinkUnused(in: db)
            footprint.measure(in: db)
            if footprint.logIsOverBudget {
                try? db.truncateLog()
                footprint.measure(in: db)
            }
        }
        try database.pool.writeWithoutTransaction { db in
            // Without it only the search is slower.
            try? CacheSchema.indexIdentities(in: db)
            footprint.addFiles(try Int64.fetchOne(db, sql: "SELECT bytes FROM total WHERE name = 'bodies'") ?? 0)
            footprint.measure(in: db)
        }
        footprint.addFixed(Self.otherBytes(in: directory))
        bindToDisk()
    }

    /// Returns the bytes in the directory beside the database and the bodies: the tag, `tmp/`, databases set aside, the directory itself.
    private static func otherBytes(in directory: String) -> Int64 {
        let counted = ["bodies", "cache.sqlite", "cache.sqlite-wal", "cache.sqlite-shm"]
        return Paths.names(in: directory).filter { !counted.contains($0) }
            .reduce(FileStatus.of(directory)?.allocated ?? 0) { $0 + (FileStatus.of("\(directory)/\($1)")?.allocated ?? 0) }
    }

    /// Now, by the clock and in the order of ticks.
    package func moment() -> Moment { Moment(at: clock(), tick: ticks.next()) }

    /// Writes back the recency kept in memory, then leaves an empty log and the mark of a clean stop.
    package func close() async {
        // These read through the connections that are closed below.
        for task in [pageCheck.withLock(\.self), sweep.withLock(\.self), keyReading.withLock(\.self)] {
            task?.cancel()
            await task?.value
        }
        try? await writeBackRecency()
        await queue.close()
        let (pool, directory, isTidy) = (database.pool, directory, !isSweeping)
        try? await lanes.run(0) {
            let isCut = (try? pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }) != nil
            try pool.close()
            // The mark certifies that there is nothing to sweep.
            if isCut && isTidy { try CleanShutdownMarker(directory: directory).leave() }
        }
        lock.release()
    }

    /// Uses of one entry that are not written to its row yet.
    struct Uses: Hashable, Sendable {
        /// The time of the last one, in milliseconds.
        var at: Int64 = 0
        var count: Int64 = 0

        mutating func add(at moment: Int64) { (at, count) = (moment, count + 1) }
    }

    /// Number of entries whose uses are written back together.
    private static let recencyCount = 8192

    /// Records that an entry was served. Kept in memory and written back in batches, never for a single read.
    package func use(_ entry: CacheEntry) {
        let now = clock().milliseconds
        let isDue = recency.withLock { recency in
            recency[entry.id, default: Uses()].add(at: now)
            return recency.count == Self.recencyCount
        }
        if isDue { Task { try? await writeBackRecency() } }
    }

    /// Names in `tmp/` that a writer owns.
    var spools: Set<String> { Set(counters.withLock(\.writers).flatMap(CacheWriter.names)) }

    /// True while bodies without a row are being removed after an unclean stop; nothing is stored meanwhile.
    package var isSweeping: Bool { counters.withLock(\.isSweeping) }
}

// MARK: - The directory
// Directory handling of the cache: the tag that backup programs honour, the lock, and setting aside a damaged database
// (docs/storage.md#directories).

/// `CACHEDIR.TAG`, by which backup programs skip the directory (bford.info/cachedir).
enum CacheDirectoryTag {
    private static let text = """
        Signature: 8a477f597d28d172789f06886806bc55
        # This directory is Rockpool's cache. It may be deleted at any time.

        """

    /// Creates the tag in an empty directory, or recognises the directory as a Rockpool cache by its tag, or by its database when the tag
    /// is missing: a user may have deleted files in any order. A power failure may leave an empty tag, which is rewritten.
    /// - Throws: `ForeignDirectory`, before anything is changed; `FileError`.
    static func claim(_ directory: String) throws {
        let path = "\(directory)/CACHEDIR.TAG"
        if let size = FileStatus.of(path)?.size, size > 0 {
            let found = size < .kib(4) ? try FileBytes.read(path) : []
            guard String(decoding: found, as: UTF8.self).contains("Rockpool") else {
                throw ForeignDirectory(directory: directory, name: "CACHEDIR.TAG")
            }
            return
        }
        // A power failure during the first start can leave a journal alone.
        let harmless = ["CACHEDIR.TAG", "lost+found", "cache.sqlite-journal"]
        let foreign = Paths.names(in: directory).sorted().first { !harmless.contains($0) }
        if let foreign, FileStatus.of(path) == nil, !hasDatabase(directory) { throw ForeignDirectory(directory: directory, name: foreign) }
        Paths.remove(path)
        let file = try Descriptor.create(path)
        let bytes = Array(text.utf8)
        try file.write(all: bytes)
        // Synced before anything else is created here: after a power failure, the rest must be recognised as Rockpool's.
        try file.synchronize()
        try Paths.synchronizeDirectory(directory)
    }

    /// True if SQLite's header identifies the database as a cache's (sqlite.org/fileformat2.html §1.2).
    private static func hasDatabase(_ directory: String) -> Bool {
        guard let found = try? FileBytes.read("\(directory)/cache.sqlite", from: 68, upTo: 4), found.count == 4 else { return false }
        return found.reduce(0) { $0 << 8 | Int32($1) } == CacheSchema.identity.applicationID
    }

    /// Locks the cache directory for one server: two servers would sweep each other's bodies and checkpoint the same log. The tag is locked
    /// because it always exists.
    /// - Throws: `CacheInUse`.
    static func lock(in directory: String) throws -> CacheLock {
        try lock(try Descriptor("\(directory)/CACHEDIR.TAG", O_RDWR), of: directory)
    }

    /// Locks the directory for a reader that changes nothing; returns nil when there is no tag, and so no possible lock holder.
    static func lockToLook(in directory: String) throws -> CacheLock? {
        let path = "\(directory)/CACHEDIR.TAG"
        return FileStatus.of(path) == nil ? nil : try lock(try Descriptor(path, O_RDONLY), of: directory)
    }

    private static func lock(_ file: consuming Descriptor, of directory: String) throws -> CacheLock {
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else { throw CacheInUse(directory: directory) }
        return CacheLock(file)
    }
}

/// A lock on the cache directory, held during this object's lifetime or until `release`.
final class CacheLock: Sendable {
    private let file: Descriptor

    init(_ file: consuming Descriptor) { self.file = file }

    func release() { flock(file.number, LOCK_UN) }
}

/// Thrown when another server uses the cache directory.
package struct CacheInUse: Error, CustomStringConvertible {
    package let directory: String
    package var description: String { "another Rockpool uses the cache directory \(directory); stop it or choose another directory" }
}

/// Thrown when the cache directory is not empty and not a Rockpool cache: its contents would be in danger.
package struct ForeignDirectory: Error, CustomStringConvertible, Equatable {
    package let directory: String
    /// The name of one entry of the directory.
    package let name: String
    package var description: String {
        "\(directory) is not empty and no Rockpool cache (it has \(name)); choose an empty or a new directory as storage.cache_dir"
    }
}

/// Thrown when other users may write into the cache directory and so control what is served from it.
package struct WritableByOthers: Error, CustomStringConvertible, Equatable {
    package let directory: String
    package var description: String { "\(directory) can be written by others; run: chmod go-w '\(directory)'" }
}

/// Moves an unusable database aside, so that a fresh one can be created.
enum SetAside {
    /// Renames the file and its log, and removes databases set aside earlier, so that they do not accumulate.
    /// - Returns: the new name.
    static func move(_ path: String, now: Timestamp) throws(FileError) -> String {
        let (directory, name) = split(path)
        for old in Paths.names(in: directory) where old.hasPrefix("\(name).corrupt-") { Paths.remove("\(directory)/\(old)") }
        let target = "\(path).corrupt-\(now.milliseconds)"
        try Paths.move(path, to: target)
        if FileStatus.of(path + "-wal") != nil { try Paths.move(path + "-wal", to: target + "-wal") }
        Paths.remove(path + "-shm")
        return target
    }

    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
