// The cursor of a delta pull and its request parameter, independent of the local clock (docs/outbox.md#delta-pull;
// docs/reference/configuration.md#delta `cursor`).

/// A position in an upstream's change history.
package struct DeltaCursor: Hashable, Sendable {
    /// The kind of a cursor's text.
    package enum Kind: String, CaseIterable, Sendable {
        /// Opaque: issued by the upstream to be sent back.
        case issued
        /// The latest time stamp seen in items: RFC 3339, or an integer of seconds or of milliseconds.
        case time, seconds, milliseconds
        /// The greatest counter or text seen in items that is not a time stamp.
        case number, text
    }

    /// The kind of `text`.
    package let kind: Kind
    /// The cursor as the upstream wrote it.
    package let text: String

    /// The overlap subtracted from time stamps in requests, because commits become visible out of the order of their time stamps.
    package static let overlap = TimeSpan.minutes(1)

    /// Creates a cursor that the upstream issued. Nil when empty.
    package init?(issued text: String) {
        guard !text.isEmpty else { return nil }
        self.init(kind: .issued, text: text)
    }

    /// Creates a cursor from the cursor member of an item. Nil for values without an order: `null`, fractions, objects.
    package init?(member value: JSONValue) {
        if let integer = value.integer ?? value.string.flatMap({ Int64($0) }) {
            self.init(kind: Self.kind(of: integer), text: String(integer))
        } else if let text = value.string, !text.isEmpty {
            self.init(kind: RFC3339.parse(text) == nil ? .text : .time, text: text)
        } else {
            return nil
        }
    }

    /// Parses a cursor from the format of `stored`.
    package init?(stored: String) {
        let words = stored.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard words.count == 2, let kind = Kind(rawValue: String(words[0])) else { return nil }
        self.init(kind: kind, text: String(words[1]))
    }

    private init(kind: Kind, text: String) {
        self.kind = kind
        self.text = text
    }

    /// The cursor's storage format.
    package var stored: String { "\(kind.rawValue) \(text)" }

    /// Returns the request parameter: a time stamp minus the overlap, in the upstream's own format; any other kind unchanged.
    package func asked(overlap: TimeSpan = DeltaCursor.overlap) -> String {
        switch kind {
        case .time: RFC3339.parse(text).map { RFC3339.format($0 - overlap) } ?? text
        case .seconds: Int64(text).map { String($0.subtractedClamped(overlap.seconds)) } ?? text
        case .milliseconds: Int64(text).map { String($0.subtractedClamped(overlap.milliseconds)) } ?? text
        case .issued, .number, .text: text
        }
    }

    /// Returns the later of two cursors. Cursors of different kinds have no order, so the result is the second, which was seen later.
    package static func later(_ a: DeltaCursor?, _ b: DeltaCursor?) -> DeltaCursor? {
        guard let a, let b else { return b ?? a }
        return a.isAfter(b) ? a : b
    }

    private func isAfter(_ other: DeltaCursor) -> Bool {
        if let moment, let another = other.moment { return moment > another }
        guard kind == other.kind else { return false }
        switch kind {
        case .number: return (Int64(text) ?? 0) > (Int64(other.text) ?? 0)
        case .text: return other.text.utf8.lexicographicallyPrecedes(text.utf8)
        case .issued, .time, .seconds, .milliseconds: return false
        }
    }

    /// The time that it names; nil for any other kind.
    var moment: Timestamp? {
        switch kind {
        case .time: RFC3339.parse(text)
        case .seconds: Int64(text).map { Timestamp(seconds: $0) }
        case .milliseconds: Int64(text).map { Timestamp(milliseconds: $0) }
        case .issued, .number, .text: nil
        }
    }

    /// Classifies an integer: from 1e11 on milliseconds since 1970 (1973 or later), from 1e8 on seconds since 1970 (1973 or later), below
    /// that a version counter.
    private static func kind(of integer: Int64) -> Kind {
        switch integer {
        case 100_000_000_000...: .milliseconds
        case 100_000_000...: .seconds
        default: .number
        }
    }
}
