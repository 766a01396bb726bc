// The bandwidth to an upstream, estimated from the bodies received from it (docs/caching.md#bandwidth).

/// The bandwidth of one upstream's bodies, an average in which recent ones count more.
package struct Bandwidth: Hashable, Sendable {
    /// The transfers that the bandwidth permits.
    package enum Tier: String, CaseIterable, Sendable {
        /// All transfers, including prefetches.
        case high
        case medium
        /// Only transfers that a client waits for.
        case low
        case none
    }

    /// A shorter body measures latency rather than bandwidth.
    package static let leastBytes = ByteCount.kib(64)
    /// Bytes per second from which the tier is `medium`, and from which it is `high`.
    package static let (mediumFrom, highFrom): (Int64, Int64) = (50_000, 500_000)
    /// Measurements older than this are ignored: a laptop may have changed networks.
    package static let validity = TimeSpan.minutes(10)

    /// Bytes per second; nil before the first measurement.
    private var rate: Double?
    private var measuredAt = Timestamp.distantPast

    package init() {}

    /// Records a body of `bytes` received in `duration` from its first byte to its last, without being throttled by its reader.
    package mutating func record(_ bytes: Int64, in duration: Duration, now: Timestamp) {
        guard bytes >= Self.leastBytes.bytes else { return }
        // A body received at once was already in the kernel's buffers.
        let sample = Double(bytes) / max(duration / .seconds(1), 0.001)
        rate = isValid(at: now) ? rate.map { ($0 + sample) / 2 } ?? sample : sample
        measuredAt = now
    }

    /// Nil without a recent measurement.
    package func tier(at now: Timestamp) -> Tier? {
        guard let rate, isValid(at: now) else { return nil }
        return rate >= Double(Self.highFrom) ? .high : rate >= Double(Self.mediumFrom) ? .medium : .low
    }

    private func isValid(at now: Timestamp) -> Bool { (now - measuredAt).magnitude <= Self.validity }
}
