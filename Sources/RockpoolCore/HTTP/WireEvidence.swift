// The transport's evidence of how far a request got (docs/outbox.md#evidence).

/// The transport's observations about a request.
package struct WireEvidence: Hashable, Sendable {
    /// Bytes sent, head and body.
    package var bytesSent: Int64
    /// True if the connection was opened for this request: on a reused one, a close before the answer proves nothing
    /// (docs/outbox.md#evidence).
    package var isFreshConnection: Bool
    /// True if the request was sent again because its first connection died: the first sending may have been applied.
    package var isRepeated: Bool
    /// True if the response ends its connection (RFC 9112 §9.3).
    package var endsConnection = false

    package init(bytesSent: Int64, isFreshConnection: Bool, isRepeated: Bool = false) {
        self.bytesSent = bytesSent
        self.isFreshConnection = isFreshConnection
        self.isRepeated = isRepeated
    }
}
