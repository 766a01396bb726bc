// Records responses that do not seem to come from their upstream, and decides when to believe them (docs/caching.md#portals-and-probes).

/// The signs of portals that responses have shown lately, by URL. A sign concerns its URL alone, unless another URL of the upstream shows
/// one too while the upstream itself is not heard.
package struct Doubts: Sendable {
    /// The place of a doubt: other places of the upstream are not affected.
    package struct Place: Hashable, Sendable {
        package var upstream: String
        package var url: String
        /// The method of a write, or the `Accept` of a read: an upstream may answer each in its own way.
        package var manner: String

        package init(upstream: String, url: String, manner: String = "") {
            (self.upstream, self.url, self.manner) = (upstream, url, manner)
        }
    }

    /// One response with a sign.
    package struct Sighting: Hashable, Sendable {
        /// Status and sign as text: answers are equal if these are.
        package var sign: String
        /// True if the sign contradicts a stored copy or the request of a write, so that it is evidence against the upstream too.
        package var isEvidence: Bool
        /// True if the response has a validator that no stored response has.
        package var hasNewValidator: Bool

        package init(sign: String, isEvidence: Bool = true, hasNewValidator: Bool = false) {
            (self.sign, self.isEvidence, self.hasNewValidator) = (sign, isEvidence, hasNewValidator)
        }
    }

    package enum Verdict: Hashable, Sendable {
        /// The upstream answers so.
        case believed
        /// This URL is in doubt, and nothing else.
        case doubted
        /// Another URL of the upstream shows a sign too: something else may answer for the whole upstream.
        case spread
    }

    private struct Record {
        var sign: String
        var isEvidence: Bool
        var first: Timestamp
        var last: Timestamp
        var count = 0
        /// Probes that were met directly after an equal answer.
        var acquittals = 0
        /// True until the next probe.
        var isOpen = true
        var isBelieved = false
    }

    /// Signs count together within this time; it is also the time after which an upstream whose signs have spread is believed.
    package static let period = TimeSpan.minutes(10)
    /// The number of equal answers, and the time that they must span, after which a URL's answer is believed.
    package static let answersNeeded = 3
    package static let timeNeeded = TimeSpan.seconds(5)
    /// An upstream that was heard within this time is doubted as a whole only for the signs of three URLs.
    package static let hearing = TimeSpan.seconds(1)
    /// Nothing is believed while a probe was not met within this time.
    package static let unmetPeriod = TimeSpan.minutes(1)
    /// Maximum number of places recorded.
    package static let limit = 1024
    private static let acquittalsNeeded = 2

    private var records: [Place: Record] = [:]
    /// When each upstream last gave an answer that no portal gives, and last did not meet its probe.
    private var heard: [String: Timestamp] = [:]
    private var unmet: [String: Timestamp] = [:]

    package init() {}

    /// The number of places recorded.
    package var count: Int { records.count }

    /// Records a response with a sign.
    /// - Parameter hasExpectation: True if the upstream's probe declares expected statuses. Then a met probe is a proof, and nothing else;
    ///   without them any response meets it.
    package mutating func note(_ sighting: Sighting, at place: Place, hasExpectation: Bool, now: Timestamp) -> Verdict {
        let known = records[place].flatMap { $0.sign == sighting.sign && $0.last <= now ? $0 : nil }
        var record = known ?? Record(sign: sighting.sign, isEvidence: sighting.isEvidence, first: now, last: now)
        (record.last, record.isOpen, record.count) = (now, true, record.count + 1)
        let isSpread = sighting.isEvidence && hasSpread(to: place, now: now)
        if !record.isBelieved {
            let proof = Proof(hasExpectation: hasExpectation, isSpread: isSpread, hasNewValidator: sighting.hasNewValidator)
            record.isBelieved = isBelieved(record, by: proof, at: place, now: now)
        }
        makeRoom(for: place)
        records[place] = record
        return record.isBelieved ? .believed : isSpread ? .spread : .doubted
    }

    private struct Proof {
        var hasExpectation: Bool
        var isSpread: Bool
        var hasNewValidator: Bool
    }

    private func isBelieved(_ record: Record, by proof: Proof, at place: Place, now: Timestamp) -> Bool {
        if let unmet = unmet[place.upstream], (now - unmet).magnitude < Self.unmetPeriod { return false }
        if proof.hasExpectation { return record.acquittals >= 1 }
        if proof.isSpread { return record.acquittals >= Self.acquittalsNeeded && now - record.first >= Self.period }
        if proof.hasNewValidator, record.acquittals >= 1 { return true }
        return record.count >= Self.answersNeeded && now - record.first >= Self.timeNeeded
    }

    /// True if another URL of the upstream has shown a sign since the upstream was last heard, and it is not heard now; or if two have.
    private func hasSpread(to place: Place, now: Timestamp) -> Bool {
        let heard = heard[place.upstream]
        let others = records.filter { other, record in
            other.upstream == place.upstream && other.url != place.url && record.isEvidence && heard.map { record.last > $0 } ?? true
                && (now - record.last).magnitude <= Self.period
        }
        let isHeard = heard.map { (now - $0).magnitude < Self.hearing } ?? false
        return Set(others.keys.map(\.url)).count >= (isHeard ? 2 : 1)
    }

    private mutating func makeRoom(for place: Place) {
        guard records.count >= Self.limit, records[place] == nil else { return }
        if let oldest = records.min(by: { $0.value.last < $1.value.last }) { records[oldest.key] = nil }
    }

    /// Called with an answer that shows the upstream itself.
    package mutating func hear(_ upstream: String, now: Timestamp) { heard[upstream] = now }

    /// True if the upstream was heard at `moment` or later.
    package func wasHeard(_ upstream: String, since moment: Timestamp) -> Bool { heard[upstream].map { $0 >= moment } ?? false }

    /// Called with an answer without a sign: the doubt of its place ends, and with it the belief in its sign.
    package mutating func end(at place: Place) { if !records.isEmpty { records[place] = nil } }

    /// Called with a probe's result: each place with a sign since the last probe gets one acquittal, or loses all of them.
    package mutating func settle(_ upstream: String, isMet: Bool, now: Timestamp) {
        if !isMet { unmet[upstream] = now }
        for (place, var record) in records where place.upstream == upstream && record.isOpen {
            record.isOpen = false
            record.acquittals = isMet ? record.acquittals + 1 : 0
            records[place] = record
        }
    }
}

/// The result of a probe that was answered (docs/reference/behaviour.md#reachability, `probe`, captive portals).
package enum ProbeVerdict: Hashable, Sendable {
    case expected
    /// The upstream responds, but not as expected.
    case unexpected(status: Int)
    /// Something else responded, for the reason in `detail`.
    case captive(detail: String)
}
