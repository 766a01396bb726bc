// The settings of an upstream's queue (docs/outbox.md).

/// The writes that may be queued, and their handling (outbox.md).
package struct QueueSettings: Hashable, Sendable {
    package enum Uncertain: String, CaseIterable, Sendable, Codable { case ask, retry, drop }
    package enum Credentials: String, CaseIterable, Sendable, Codable { case memory, sealed }
    package enum Squash: String, CaseIterable, Sendable, Codable { case off, safe }
    /// Whether equal POSTs in quick succession that are answered 202 are one write, or each is one (docs/outbox.md#repeats).
    package enum Repeats: String, CaseIterable, Sendable, Codable { case same, each }

    package var methods: [String]
    package var maxBody: ByteCount
    package var uncertain: Uncertain
    /// Counted answers after which an operation is given up instead of being tried again (docs/outbox.md#answers).
    package var maxAttempts: Int
    package var credentials: Credentials
    package var squash: Squash
    package var repeats = Repeats.same
    /// The longest time for which a write with an unknown effect is looked for, and holds later writes to its entity.
    package var uncertainHold = TimeSpan.seconds(60)

    package init(
        methods: [String] = ["POST", "PUT", "PATCH", "DELETE", "MKCOL", "MOVE", "COPY"], maxBody: ByteCount = .mb(10),
        uncertain: Uncertain = .ask,
        maxAttempts: Int = 10, credentials: Credentials = .memory, squash: Squash = .off
    ) {
        self.methods = methods
        self.maxBody = maxBody
        self.uncertain = uncertain
        self.maxAttempts = maxAttempts
        self.credentials = credentials
        self.squash = squash
    }
}
