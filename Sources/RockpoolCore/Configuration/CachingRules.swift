// What a route or an upstream may set for the caching of its responses: lifetimes (docs/caching.md#lifetimes-by-route), and reading on
// after a client has left (docs/caching.md#storability; cf. Squid's quick_abort_min, _max and _pct).

/// `ttl` of a route. It is kept with a stored response, so that every later decision about it follows the same rule.
package struct LifetimeRule: Hashable, Sendable {
    /// `default`: the lifetime of a response that states none; nil: that of the category, or a heuristic one.
    package var fallback: TimeSpan?
    /// `min`: no lifetime is shorter; of a lifetime that the response states only with `overrides`.
    package var least: TimeSpan?
    /// `max`: no lifetime is longer.
    package var most: TimeSpan?
    /// `override`: the rule counts more than what the response says. `no-cache` and a lifetime of zero then count as nothing said, and
    /// `must-revalidate` and its kind do not apply.
    package var overrides = false

    package init() {}

    /// True if `min` is above `max`.
    package var isContradictory: Bool { least.map { least in most.map { least > $0 } ?? false } ?? false }
}

extension LifetimeRule {
    /// Reads the text that is kept with a stored response; nil if it is none.
    init?(_ text: String) {
        self.init()
        for member in text.split(separator: " ") {
            let parts = member.split(separator: "=", maxSplits: 1)
            let span = parts.count == 2 ? Int64(parts[1]).map { TimeSpan(milliseconds: max(0, $0)) } : nil
            switch (parts.first, span) {
            case ("default", let span?): fallback = span
            case ("min", let span?): least = span
            case ("max", let span?): most = span
            case ("override", nil): overrides = true
            default: return nil
            }
        }
    }

    /// The text that is kept with a stored response; spans in milliseconds.
    var text: String {
        let spans = [("default", fallback), ("min", least), ("max", most)].compactMap { name, span in
            span.map { "\(name)=\($0.milliseconds)" }
        }
        return (spans + (overrides ? ["override"] : [])).joined(separator: " ")
    }
}

/// The decision about one fetch when its client disconnects.
package enum ClientAbortPolicy: Hashable, Sendable {
    /// Read the rest and store it.
    case finish
    case abort(Reason)

    /// The reason why the rest is not fetched.
    package enum Reason: String, CaseIterable, Sendable, Codable {
        /// The response is not stored, so nothing of it would remain.
        case notStored = "not-stored"
        /// Too many bytes remain.
        case tooMuchRemains = "too-much-remains"
        /// The length is not announced; the response may never end.
        case endUnknown = "end-unknown"
        /// The configuration says so (`on_abort: never`).
        case rule
    }

    /// A remainder up to this size is read: about the amount that socket buffers already hold, and that a new connection with its TLS
    /// handshake would cost again.
    package static let smallRest = ByteCount.kib(64)
    /// A fetch with at least this part received counts as nearly done.
    package static let nearlyDonePercent: Int64 = 95
    /// The upper limit for a nearly finished fetch without a client: five percent of a disk image is still a lot.
    package static let maxRest = ByteCount.mib(16)

    /// - Parameters:
    ///   - received: Body bytes so far.
    ///   - announced: The length of the whole body, if the response announces it.
    ///   - hasOtherReaders: True if another client still reads the same fetch.
    ///   - rule: The rule of the configuration; nil: the built-in bounds.
    package static func decide(
        received: ByteCount, announced: ByteCount?, isStored: Bool, hasOtherReaders: Bool, rule: AbortRule? = nil
    ) -> ClientAbortPolicy {
        if hasOtherReaders { return .finish }
        guard isStored else { return .abort(.notStored) }
        switch rule {
        case .word(.always): return .finish
        case .word(.never): return .abort(.rule)
        case .bounds(let bounds): return decide(received, of: announced, within: bounds, maxRest: nil)
        case nil: return decide(received, of: announced, within: AbortBounds(), maxRest: maxRest)
        }
    }

    private static func decide(
        _ received: ByteCount, of announced: ByteCount?, within bounds: AbortBounds, maxRest: ByteCount?
    ) -> ClientAbortPolicy {
        guard let announced else { return .abort(.endUnknown) }
        let rest = announced - received
        if rest <= bounds.finishBelow { return .finish }
        let isNearlyDone =
            rest.bytes.multipliedClamped(by: 100) <= announced.bytes.multipliedClamped(by: Int64(100 - bounds.finishAbovePercent))
        return isNearlyDone && rest <= maxRest ?? rest ? .finish : .abort(.tooMuchRemains)
    }
}

/// What the configuration says about a fetch whose client leaves (`on_abort`).
package enum AbortRule: Hashable, Sendable {
    package enum Word: String, CaseIterable, Sendable, Codable { case always, never }

    /// Read the rest of every body that is stored, or of none.
    case word(Word)
    case bounds(AbortBounds)
}

/// The rest of a body that is read without a client. A body whose length is not announced is outside.
package struct AbortBounds: Hashable, Sendable {
    /// A rest up to this size is read.
    package var finishBelow = ClientAbortPolicy.smallRest
    /// The rest is read once this part of the body has arrived, in percent, 0…100.
    package var finishAbovePercent = Int(ClientAbortPolicy.nearlyDonePercent)

    package init() {}
}
