// Answers that do not look like their upstream's own, and when they are believed all the same.

/// What was odd about answers lately. An upstream may change what it gives: an oddity that comes again and again while probes find the
/// upstream in order is its own.
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
        /// Probes that found the upstream in order right after the oddity was seen.
        var acquittals = 0
        var isOpen = true
    }

    /// What was seen longer ago than this counts no more; without an expectation, an oddity that lasts so long is believed.
    package static let period = TimeSpan.minutes(10)
    /// Oddities that are remembered.
    package static let limit = 1024
    private static let acquittalsNeeded = 2

    private var records: [Oddity: Record] = [:]

    package init() {}

    /// Oddities that are remembered now.
    package var count: Int { records.count }

    /// Takes in an odd answer.
    ///
    /// - Parameters:
    ///   - hasExpectation: Whether the upstream's probe names what it expects. Any answer meets one that does not: then only time tells.
    ///   - wasUnmetLately: Whether a probe found something else in the upstream's place within `period`: then nothing odd is believed.
    /// - Returns: whether it is doubted.
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

    /// A probe has told: what was doubted by then is acquitted once, or not at all.
    package mutating func settle(_ upstream: String, isMet: Bool) {
        for (oddity, var record) in records where oddity.upstream == upstream && record.isOpen {
            record.isOpen = false
            record.acquittals = isMet ? record.acquittals + 1 : 0
            records[oddity] = record
        }
    }
}
