// Adapts the cache limit to the free disk space at the start and while running: other programs use the same disk (docs/storage.md#ledger).
import GRDB
import Logging
package import RockpoolCore
import Synchronization

extension CacheStore {
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
