// Records responses that do not seem to come from their upstream, and decides when to accept them.

/// The recently observed oddities of responses. An upstream may change its responses: an oddity that recurs while probes find the upstream
/// in order is accepted as the upstream's own.
package struct Doubts: Sendable {
    package struct Oddity: Hashable, Sendable {
        package var upstream: String
        package var url: String
        package var sign: String

        package init(upstream: String, url: String, sign: String) {
            self.upstream = upstream
            self.url = url
            self.sign = sign
        }
    }

    private struct Record {
        var first: Timestamp
        var last: Timestamp
        /// Probes that found the upstream in order directly after the oddity was observed.
        var acquittals = 0
        var isOpen = true
    }

    /// Older observations are ignored; without an expectation, an oddity that recurs for this long is accepted.
    package static let period = TimeSpan.minutes(10)
    /// Maximum number of oddities recorded.
    package static let limit = 1024
    private static let acquittalsNeeded = 2

    private var records: [Oddity: Record] = [:]

    package init() {}

    /// The number of oddities recorded.
    package var count: Int { records.count }

    /// Records an odd response.
    ///
    /// - Parameters:
    ///   - hasExpectation: True if the upstream's probe declares expected statuses. Without them any response passes the probe, and only
    ///     time can confirm the oddity.
    ///   - wasUnmetLately: True if a probe found something else in the upstream's place within `period`: then no oddity is accepted.
    /// - Returns: True if the response is doubted.
    package mutating func stands(_ oddity: Oddity, hasExpectation: Bool, wasUnmetLately: Bool, now: Timestamp) -> Bool {
        var record = records[oddity] ?? Record(first: now, last: now)
        if (now - record.last).magnitude > Self.period { record = Record(first: now, last: now) }
        record.last = now
        let isBelieved =
            !wasUnmetLately && record.acquittals >= Self.acquittalsNeeded && (hasExpectation || now - record.first >= Self.period)
        if !isBelieved { record.isOpen = true }
        if records.count >= Self.limit, records[oddity] == nil, let oldest = records.min(by: { $0.value.last < $1.value.last }) {
            records[oldest.key] = nil
        }
        records[oddity] = record
        return !isBelieved
    }

    /// Called with a probe's result: each oddity observed since the last probe gets one acquittal, or loses all of them.
    package mutating func settle(_ upstream: String, isMet: Bool) {
        for (oddity, var record) in records where oddity.upstream == upstream && record.isOpen {
            record.isOpen = false
            record.acquittals = isMet ? record.acquittals + 1 : 0
            records[oddity] = record
        }
    }
}
