// Who has something in front of it, and when and from where a client got the state on which its write builds (docs/outbox.md#sight).

/// One program of one identity. A site's devices often share one credential, and clients without a credential share none.
package struct Viewer: Hashable, Sendable {
    /// The partition of the identity; empty for clients without a credential.
    package var partition: String
    /// Tells the programs of the identity apart; nil where nothing does: then it counts as any of them.
    package var program: Program?

    package init(partition: String?, program: Program? = nil) { (self.partition, self.program) = (partition ?? "", program) }

    /// A program, told by its address and its `User-Agent`: the number is the same after a restart.
    package struct Program: Hashable, Sendable {
        package let number: Int64

        package init(number: Int64) { self.number = number }

        /// Nil where neither is known.
        /// - Parameters:
        ///   - address: without the port, which each connection has anew. All of this machine's own addresses are one.
        ///   - userAgent: the bytes of the field's value.
        package init?(address: String, userAgent: Span<UInt8>) {
            guard !address.isEmpty || !userAgent.isEmpty else { return nil }
            let place = address.hasPrefix("::ffff:") ? address.dropFirst(7) : address[...]
            var hash = FNV1a()
            hash.add((place == "::1" || place.hasPrefix("127.") ? "localhost" : place).utf8)
            hash.add(0xFF)
            for index in userAgent.indices { hash.add(userAgent[index]) }
            number = Int64(bitPattern: hash.value)
        }

        package init?(address: String, userAgent: String) { self.init(address: address, userAgent: userAgent.utf8Span.span) }
    }
}

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
