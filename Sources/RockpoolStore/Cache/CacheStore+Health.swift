// Storing is suspended while the cache's disk fails; requests are forwarded without it (docs/storage.md#faults).
import GRDB
import Glibc
import Logging
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// The reason why the cache does not store; nil when it does.
    package var trouble: StorageHealth.Trouble? { health.withLock(\.machine.trouble) }

    /// Registers an observer that is called when storing begins to fail and when it works again.
    package func onHealthChange(_ observer: @escaping @Sendable (StorageHealth.Change) -> Void) {
        health.withLock { $0.observer = observer }
    }

    /// True if a new body may be written.
    var mayWrite: Bool { health.withLock { $0.machine.mayWrite(now: clock()) } }

    /// False while no response is stored: the disk refuses writes, or the sweep after an unclean stop is still running.
    package var isOpenForWrites: Bool { mayWrite && !isSweeping }

    /// Runs a disk write and records its success or failure.
    func watched<T>(_ write: () async throws -> T) async throws -> T {
        do {
            let value = try await write()
            tell(health.withLock { ($0.machine.wrote(), $0.observer) })
            return value
        } catch {
            noteFailure(error)
            throw error
        }
    }

    func noteFailure(_ error: any Error) {
        if (error as? DatabaseError)?.saysCorrupt == true { return condemn("\(error)") }
        guard let fault = StorageHealth.Fault(error) else { return }
        fail(fault, detail: "\(error)")
    }

    func fail(_ fault: StorageHealth.Fault, detail: String) {
        let change = health.withLock { ($0.machine.failed(fault, detail: detail, now: clock()), $0.observer) }
        tell(change)
        guard case .fell(let fault) = change.0 else { return }
        logger.error("the cache stores nothing for now", metadata: ["fault": "\(fault.rawValue)", "error": "\(detail)"])
        if fault == .full { Task { await yieldDisk() } }
    }

    /// Recreates directories that another program may have deleted while running: the tag first, because the next start recognises the
    /// directory by it. Blocks.
    /// - Throws: `ForeignDirectory` when another program uses the path now; `FileError`.
    func makePlacesAgain() throws {
        guard FileStatus.of("\(directory)/tmp") == nil || FileStatus.of(bodies.root) == nil else { return }
        try Paths.makeDirectories(directory)
        try CacheDirectoryTag.claim(directory)
        for place in ["\(directory)/tmp", bodies.root] { try Paths.makeDirectory(place) }
    }

    /// Frees disk space after other programs filled the disk: truncates the log, so that there is space for the rows that eviction changes;
    /// then lowers the limit to what the disk has.
    private func yieldDisk() async {
        try? await queue.outside { try $0.truncateLog() }
        counters.withLock { $0.nextBinding = Timestamp(milliseconds: .min) }
        await bindWhenDue()
    }

    private func tell(_ report: (change: StorageHealth.Change, observer: (@Sendable (StorageHealth.Change) -> Void)?)) {
        if report.change == .none { return }
        if report.change == .recovered { logger.notice("the cache stores again") }
        report.observer?(report.change)
    }

    /// Checks the pages of the database in the background after an unclean stop. The start does not wait for the result, because a lookup
    /// verifies each body's checksum anyway. A damaged database is set aside by the next start.
    func checkPagesInBackground() {
        pageCheck.withLock { task in
            task = Task(priority: .utility) { [self] in
                // Uses a connection of its own; those of the pool stay free for requests.
                guard let reader = try? StoreDatabase.reader(database.path) else { return }
                let problems = try? await PageCheck.problems(reader, byTable: true)
                try? reader.close()
                if let problem = problems?.first { condemn(problem) }
            }
        }
    }

    private func condemn(_ verdict: String) {
        guard trouble?.fault != .damaged else { return }
        fail(.damaged, detail: verdict)
        do { try Descriptor(Self.condemnation(in: directory), O_WRONLY | O_CREAT).synchronize() } catch {
            logger.error("the damage cannot be noted", metadata: ["error": "\(error)"])
        }
    }

    /// The path of the empty file that marks `cache.sqlite` as damaged.
    static func condemnation(in directory: String) -> String { "\(directory)/damaged" }

    // Adapts the cache limit to the free disk space at the start and while running: other programs use the same disk
    // (docs/storage.md#ledger).

    /// Returns the limit at the start: that of the configuration, or less on a small or full disk.
    static func startLimit(of database: StoreDatabase, in directory: String, _ settings: StorageSettings) -> ByteCount {
        let bodies = (try? database.pool.read { try Int64.fetchOne($0, sql: "SELECT bytes FROM total WHERE name = 'bodies'") }) ?? 0
        let files = ["", "-wal", "-shm"].reduce(0) { $0 + (FileStatus.of(database.path + $1)?.allocated ?? 0) }
        let bound = DiskBound.decide(
            configured: settings.cacheLimit.bytes, used: bodies + files, free: FreeSpace.bytes(at: directory),
            minFree: settings.minFree.bytes)
        return ByteCount(bound.limit)
    }

    /// Takes the limits of other settings, and evicts what exceeds them.
    package func take(limitsOf new: StorageSettings) async {
        settingsInForce.withLock { $0 = $0.taking(limitsOf: new) }
        counters.withLock { $0.nextBinding = .distantPast }
        await bindWhenDue()
    }

    /// Measures the disk at most once a second, off the caller's thread.
    func bindWhenDue() async {
        let now = clock()
        let isDue = counters.withLock { counters in
            // A clock that was set back must not postpone the measurement.
            guard now >= counters.nextBinding || counters.nextBinding - now > .seconds(1) else { return false }
            counters.nextBinding = now + .seconds(1)
            return true
        }
        guard isDue else { return }
        try? await lanes.run(0) { self.bindToDisk() }
        if footprint.ledger.isEvictionDue { Task { await evictToLowMark() } }
    }

    /// Sets the limit to the smallest bound. The bytes that writers have already written of their reservations count as used: they are no
    /// longer part of the free space.
    func bindToDisk() {
        let temporaries = Paths.names(in: "\(directory)/tmp").reduce(0) { $0 + (FileStatus.of("\(directory)/tmp/\($1)")?.allocated ?? 0) }
        let bound = DiskBound.decide(
            configured: settings.cacheLimit.bytes, used: footprint.ledger.used - footprint.unusedLogBudget + temporaries,
            free: FreeSpace.bytes(at: directory), minFree: settings.minFree.bytes)
        guard footprint.bind(to: bound) else { return }
        let numbers: Logger.Metadata = [
            "cache_limit": "\(settings.cacheLimit)", "min_free": "\(settings.minFree)", "bytes": "\(bound.limit)",
        ]
        switch bound.reason {
        case .configured: logger.notice("the disk has room for all of cache_limit again", metadata: numbers)
        case .disk: logger.warning("the disk is smaller than cache_limit: the cache takes less", metadata: numbers)
        case .minFree: logger.warning("min_free would be passed: the cache takes less than cache_limit", metadata: numbers)
        }
    }
}
