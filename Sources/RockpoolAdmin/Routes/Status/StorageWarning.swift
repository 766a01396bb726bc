// Low storage in one sentence with the next command, for `/v1/status` (docs/reference/admin-api.md#status).
import RockpoolCore
import RockpoolStore

/// The most urgent shortage of storage.
enum StorageWarning {
    /// The share of a limit, in percent, from which it is worth a word.
    private static let highPercent = 90

    /// Returns nil if there is no shortage.
    static func words(cache: CacheStore, data: DataStore, minFree: ByteCount) async throws -> String? {
        if let trouble = data.trouble { return "the outbox is \(trouble.fault.rawValue): \(trouble.detail); see rockpool doctor" }
        let outbox = data.usage()
        if outbox.limitBytes > 0, outbox.usedBytes >= outbox.limitBytes.percent(highPercent) {
            let (used, limit) = (ByteCount(outbox.usedBytes).rounded, ByteCount(outbox.limitBytes).rounded)
            return "the outbox uses \(used) of \(limit), and refuses writes at the limit: rockpool outbox summary shows what fills it"
        }
        let room = try await cache.usage()
        if room.freeDiskBytes < minFree.bytes {
            return
                "the disk has \(ByteCount(room.freeDiskBytes).rounded) free, less than storage.min_free: rockpool storage-cleanup --dry-run says what could go"
        }
        if let trouble = cache.trouble { return "the cache is \(trouble.fault.rawValue): \(trouble.detail); see rockpool doctor" }
        return nil
    }
}
