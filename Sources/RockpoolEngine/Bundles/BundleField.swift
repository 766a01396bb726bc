// The fields that Rockpool adds to the records of a bundle.

/// Named fields of Rockpool; other tools ignore unknown fields (ISO 28500:2017 §5.1).
enum BundleField {
    static let category = "Rockpool-Category"
    /// When the response, or the last 304 for it, was received (RFC 9111 §4.2.3); `WARC-Date` is when it was requested.
    static let receivedAt = "Rockpool-Received-At"
    /// The freshness lifetime assigned to a response without one of its own.
    static let assignedSeconds = "Rockpool-Assigned-Seconds"
    /// The response must not be used without validation (RFC 9111 §4.4).
    static let invalidated = "Rockpool-Invalidated"
}
