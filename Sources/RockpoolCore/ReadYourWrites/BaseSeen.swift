// When and from where a client got the state on which its write builds (docs/outbox.md#sight): for the eyes of a person.

/// Where the base of a write came from.
package struct BaseSeen: Hashable, Sendable {
    /// When its client was shown it last.
    package let at: Timestamp
    /// Nil where that is not known.
    package let source: ShownState.Source?
    /// The entity tag that it had; nil without one.
    package let version: String?

    package init(at: Timestamp, source: ShownState.Source?, version: String?) {
        (self.at, self.source, self.version) = (at, source, version)
    }

    /// As it is stored: the moment in milliseconds, the source, and the tag.
    package var text: String { "\(at.milliseconds) \(source?.rawValue ?? "-") \(version ?? "")" }

    /// - Parameter text: `text`; nil for anything else.
    package init?(text: String) {
        let parts = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let moment = Int64(parts[0]) else { return nil }
        self.init(
            at: Timestamp(milliseconds: moment), source: ShownState.Source(rawValue: String(parts[1])),
            version: parts[2].isEmpty ? nil : String(parts[2]))
    }

    /// As JSON: `at`, `from` and `version`.
    package var json: JSONValue {
        ["at": .string(RFC3339.format(at)), "from": .optional(source?.rawValue), "version": .optional(version)]
    }
}

extension ShownState {
    /// When and from where it was got; nil where that is not known.
    package var seen: BaseSeen? { shownAt.map { BaseSeen(at: $0, source: source, version: version?.fieldValue) } }
}
