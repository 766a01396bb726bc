// The last hour of traffic and the last day of storage, so that a newly opened dashboard has data to draw
// (docs/reference/admin-api.md#storage).
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import Synchronization

/// The counters, sampled step by step.
struct TrafficHistory: Sendable {
    /// The counters at one moment.
    struct Reading: Sendable {
        var at: Timestamp
        var requests: [Trace.Verdict: Int]
        var latency: LatencyHistogram

        init(_ statistics: Statistics, at moment: Timestamp) {
            at = moment
            requests = Dictionary(uniqueKeysWithValues: Trace.Verdict.allCases.map { ($0, statistics[$0]) })
            latency = statistics.latencies.values.reduce(LatencyHistogram(), +)
        }
    }

    /// The time between two steps.
    static let step = TimeSpan.seconds(10)
    /// The number of steps kept: one hour.
    static let limit = 360
    /// The lengths of the windows for people, in minutes.
    private static let windows: [Int64] = [1, 5, 60]

    /// The newest sample is last.
    private(set) var samples: [JSONValue] = []
    private var readings: [Reading]

    init(_ first: Reading) { readings = [first] }

    /// Takes a reading if one is due. Returns true if it did.
    mutating func take(_ reading: Reading) -> Bool {
        guard let last = readings.last, reading.at >= last.at else {
            // The clock was set back: the length of the step is unknown, and older samples would have later times.
            (readings, samples) = ([reading], [])
            return false
        }
        guard reading.at - last.at >= Self.step else { return false }
        if samples.count == Self.limit { samples.removeFirst() }
        samples.append(Self.sample(from: last, to: reading))
        if readings.count > Self.limit { readings.removeFirst() }
        readings.append(reading)
        return true
    }

    /// The latency quantiles of the last minute.
    func latency(until reading: Reading) -> JSONValue {
        let recent = reading.latency - (first(since: reading.at - .minutes(1))?.latency ?? LatencyHistogram())
        return [
            "p50Seconds": Self.optional(recent.quantile(0.5)), "p90Seconds": Self.optional(recent.quantile(0.9)),
            "p99Seconds": Self.optional(recent.quantile(0.99)),
        ]
    }

    /// The rates and latencies of the last minute, of five and of sixty; a window is shorter where the server has not run for as long.
    func windows(until reading: Reading) -> JSONValue {
        .array(
            Self.windows.compactMap { minutes in
                guard let first = first(since: reading.at - .minutes(minutes)), reading.at > first.at else { return nil }
                let seconds = Double((reading.at - first.at).milliseconds) / 1000
                let counts = reading.requests.merging(first.requests) { $0 - $1 }
                let latency = reading.latency - first.latency
                let served = [Trace.Verdict.hit, .stale, .revalidated, .collapsed].reduce(0) { $0 + counts[$1, default: 0] }
                let read = served + counts[.miss, default: 0]
                return [
                    "minutes": .integer(minutes), "seconds": .real(seconds),
                    "requestsPerSecond": .real(Double(counts.values.reduce(0, +)) / seconds),
                    "hitRatio": read == 0 ? .null : .real(Double(served) / Double(read)),
                    "p50Seconds": Self.optional(latency.quantile(0.5)), "p99Seconds": Self.optional(latency.quantile(0.99)),
                ]
            })
    }

    /// The first reading of a window that begins at `moment`.
    private func first(since moment: Timestamp) -> Reading? { readings.first { $0.at >= moment } ?? readings.last }

    private static func sample(from: Reading, to: Reading) -> JSONValue {
        let requests = Trace.Verdict.allCases.map {
            ($0.rawValue, JSONValue.integer(to.requests[$0, default: 0] - from.requests[$0, default: 0]))
        }
        let latency = to.latency - from.latency
        return [
            "at": .time(to.at), "seconds": .real(Double((to.at - from.at).milliseconds) / 1000),
            "requests": .object(JSONObject(requests)), "p50Seconds": optional(latency.quantile(0.5)),
            "p99Seconds": optional(latency.quantile(0.99)),
        ]
    }

    private static func optional(_ value: Double?) -> JSONValue { value.map { .real($0) } ?? .null }
}

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
