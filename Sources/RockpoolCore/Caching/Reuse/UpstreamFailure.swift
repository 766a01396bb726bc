// The failures that permit stale responses (RFC 5861 §4).

/// The way the upstream failed.
package enum UpstreamFailure: Hashable, Sendable {
    /// No connection, or the connection failed before a response.
    case unreachable
    /// Certificate verification failed: the peer is not the upstream, and no stored response is served in its place
    /// (docs/reference/behaviour.md#offline-reads).
    case untrusted
    /// The upstream answered with this status.
    case status(Int)
}
