// The last hour of traffic in steps of ten seconds, so that a newly opened dashboard has data to draw.
import RockpoolCore
import RockpoolEngine

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
    /// The number of steps over which the current latency is computed.
    private static let recent = 6

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
        if readings.count > Self.recent { readings.removeFirst() }
        readings.append(reading)
        return true
    }

    /// The latency quantiles of the last minute.
    func latency(until reading: Reading) -> JSONValue {
        let recent = reading.latency - (readings.first?.latency ?? LatencyHistogram())
        return [
            "p50Seconds": Self.optional(recent.quantile(0.5)), "p90Seconds": Self.optional(recent.quantile(0.9)),
            "p99Seconds": Self.optional(recent.quantile(0.99)),
        ]
    }

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
