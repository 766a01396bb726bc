// The sizes of the directories over the last day, so that a newly opened dashboard has data to draw (docs/reference/admin-api.md#storage).
import RockpoolCore
import RockpoolStore
import Synchronization

/// One sample a minute, kept in memory.
final class StorageHistory: Sendable {
    /// The number of samples kept: one day.
    static let limit = 1440
    private static let step = Duration.seconds(60)

    private let samples = Mutex<[JSONValue]>([])
    private let cache: CacheStore
    private let data: DataStore
    private let now: @Sendable () -> Timestamp

    init(cache: CacheStore, data: DataStore, now: @escaping @Sendable () -> Timestamp) {
        (self.cache, self.data, self.now) = (cache, data, now)
    }

    /// The samples, the newest last.
    var list: [JSONValue] { samples.withLock(\.self) }

    /// Takes samples until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            await take()
            try? await Task.sleep(for: Self.step)
        }
    }

    /// Takes one sample; none while the cache cannot be read.
    func take() async {
        guard let usage = try? await cache.usage() else { return }
        let data = data.usage()
        let sample: JSONValue = [
            "at": .time(now()), "cacheBytes": .integer(usage.usedBytes), "cacheLimitBytes": .integer(usage.limitBytes),
            "dataBytes": .integer(data.usedBytes), "dataLimitBytes": .integer(data.limitBytes),
            "freeDiskBytes": .integer(usage.freeDiskBytes),
        ]
        samples.withLock { samples in
            if samples.count == Self.limit { samples.removeFirst() }
            samples.append(sample)
        }
    }
}
