// When this gateway last wrote to an origin: what another gateway has kept from before may lack the write (docs/fleet.md#caches).

/// The last write to each origin, for a limited number of origins.
package struct OwnWriteTimes: Sendable {
    /// Origins at most.
    private static let limit = 1000

    private var times: [OriginAddress: Timestamp] = [:]
    /// The last write to an origin that is not listed.
    private var others: Timestamp

    /// - Parameter startedAt: writes before it are not known, so there may have been one just then.
    package init(startedAt: Timestamp) { others = startedAt }

    package mutating func note(_ origin: OriginAddress, at moment: Timestamp) {
        times[origin] = max(moment, times[origin] ?? moment)
        guard times.count > Self.limit, let oldest = times.min(by: { $0.value < $1.value }) else { return }
        times[oldest.key] = nil
        others = max(others, oldest.value)
    }

    /// Returns the greatest age in seconds of a response of the origin that has seen every write of this gateway.
    package func greatestAge(of origin: OriginAddress, now: Timestamp) -> Int64 {
        // Ages are whole seconds, and a response may be as old as its transfer.
        max(0, (now - max(times[origin] ?? others, .distantPast)).seconds - 1)
    }
}
