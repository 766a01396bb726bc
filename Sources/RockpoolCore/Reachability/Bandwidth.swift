// How much the way to an upstream lets through, from the bodies that came over it (features K3).

/// What one upstream's bodies came in at, the newer ones counting more.
package struct Bandwidth: Hashable, Sendable {
    /// What the way is good for.
    package enum Tier: String, CaseIterable, Sendable {
        /// Everything, what nobody has asked for yet included.
        case high
        case medium
        /// Only what somebody waits for.
        case low
        case none
    }

    /// A shorter body tells of the way's latency, not of its width.
    package static let leastBytes = ByteCount.kib(64)
    /// Bytes a second from which on it is not `low`, and from which on it is `high`.
    package static let (mediumFrom, highFrom): (Int64, Int64) = (50_000, 500_000)
    /// Nothing newer than that: a laptop may be on another network by now.
    package static let validity = TimeSpan.minutes(10)

    /// Bytes a second; nil before the first body that told.
    private var rate: Double?
    private var measuredAt = Timestamp.distantPast

    package init() {}

    /// A body of `bytes` came in `duration` from its first byte to its last, while whoever took it kept up.
    package mutating func record(_ bytes: Int64, in duration: Duration, now: Timestamp) {
        guard bytes >= Self.leastBytes.bytes else { return }
        // What came at once was in the kernel's buffers already.
        let sample = Double(bytes) / max(duration / .seconds(1), 0.001)
        rate = isValid(at: now) ? rate.map { ($0 + sample) / 2 } ?? sample : sample
        measuredAt = now
    }

    /// Nil when nothing of late has told.
    package func tier(at now: Timestamp) -> Tier? {
        guard let rate, isValid(at: now) else { return nil }
        return rate >= Double(Self.highFrom) ? .high : rate >= Double(Self.mediumFrom) ? .medium : .low
    }

    private func isValid(at now: Timestamp) -> Bool { (now - measuredAt).magnitude <= Self.validity }
}
