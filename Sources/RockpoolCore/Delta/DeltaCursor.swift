// How far a pull has come, and what is asked for next: never by our own clock (outbox.md §1.11; contract §6 `cursor`).

/// A place in an upstream's history.
package struct DeltaCursor: Hashable, Sendable {
    /// What its text is.
    package enum Kind: String, CaseIterable, Sendable {
        /// Given by the upstream to be handed back; nothing is known of it.
        case issued
        /// The greatest moment seen in items: RFC 3339, or an integer of seconds or of milliseconds.
        case time, seconds, milliseconds
        /// The greatest counter or text seen in items that is no moment.
        case number, text
    }

    /// What its text is.
    package let kind: Kind
    /// As the upstream wrote it.
    package let text: String

    /// Moments are asked for this much earlier: commits become visible out of the order of their time stamps.
    package static let overlap = TimeSpan.minutes(1)

    /// A cursor that the upstream gave for handing back. Nil when empty.
    package init?(issued text: String) {
        guard !text.isEmpty else { return nil }
        self.init(kind: .issued, text: text)
    }

    /// The cursor member of an item. Nil for what has no order: `null`, fractions, objects.
    package init?(member value: JSONValue) {
        if let integer = value.integer ?? value.string.flatMap({ Int64($0) }) {
            self.init(kind: Self.kind(of: integer), text: String(integer))
        } else if let text = value.string, !text.isEmpty {
            self.init(kind: RFC3339.parse(text) == nil ? .text : .time, text: text)
        } else {
            return nil
        }
    }

    /// A cursor read back from `stored`.
    package init?(stored: String) {
        let words = stored.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard words.count == 2, let kind = Kind(rawValue: String(words[0])) else { return nil }
        self.init(kind: kind, text: String(words[1]))
    }

    private init(kind: Kind, text: String) {
        self.kind = kind
        self.text = text
    }

    /// For keeping.
    package var stored: String { "\(kind.rawValue) \(text)" }

    /// What goes into the request: moments with the overlap taken off, in the form the upstream wrote them; all else as it is.
    package func asked(overlap: TimeSpan = DeltaCursor.overlap) -> String {
        switch kind {
        case .time: RFC3339.parse(text).map { RFC3339.format($0 - overlap) } ?? text
        case .seconds: Int64(text).map { String($0.subtractedClamped(overlap.seconds)) } ?? text
        case .milliseconds: Int64(text).map { String($0.subtractedClamped(overlap.milliseconds)) } ?? text
        case .issued, .number, .text: text
        }
    }

    /// The later of two. Cursors of different kinds have no order: then the second, which was seen later.
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

    private var moment: Timestamp? {
        switch kind {
        case .time: RFC3339.parse(text)
        case .seconds: Int64(text).map { Timestamp(seconds: $0) }
        case .milliseconds: Int64(text).map { Timestamp(milliseconds: $0) }
        case .issued, .number, .text: nil
        }
    }

    /// Seconds since 1973, milliseconds since 1973; what is smaller counts versions.
    private static func kind(of integer: Int64) -> Kind {
        switch integer {
        case 100_000_000_000...: .milliseconds
        case 100_000_000...: .seconds
        default: .number
        }
    }
}
