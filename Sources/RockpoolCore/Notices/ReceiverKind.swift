// The receivers of Rockpool's own messages, which wait in the outbox like writes (docs/outbox.md#messages).

/// The kind of a receiver. Its name prefixes that of the upstream, which a configured name cannot imitate: it holds a colon.
package enum ReceiverKind: String, CaseIterable, Sendable {
    case webhook, callback
    /// A collector of the reports of sites.
    case report

    /// The name under which the outbox keeps messages to `origin`.
    package func upstreamName(of origin: OriginAddress) -> String { "\(rawValue):\(origin.url)" }

    /// The kind of the receiver with this name; nil for an ordinary upstream.
    package init?(upstream name: String) {
        guard let colon = name.firstIndex(of: ":"), let kind = ReceiverKind(rawValue: String(name[..<colon])),
            name[colon...].hasPrefix(":http")
        else { return nil }
        self = kind
    }
}
