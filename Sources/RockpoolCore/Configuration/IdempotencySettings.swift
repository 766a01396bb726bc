// The settings of an upstream's idempotency keys (docs/outbox.md#keys).

/// The upstream's support for idempotency keys (docs/outbox.md#keys).
package struct IdempotencySettings: Hashable, Sendable {
    package enum Format: String, CaseIterable, Sendable, Codable { case quoted, raw }
    package enum Honoured: String, CaseIterable, Sendable, Codable { case yes, no, unknown }

    package var header: String
    package var format: Format
    package var honoured: Honoured
    /// The time for which the upstream remembers a key, from the first send.
    package var ttl: TimeSpan
    /// The time for which an unanswered request may still take effect.
    package var maxProcessing: TimeSpan

    package init(
        header: String = "Idempotency-Key", format: Format = .quoted, honoured: Honoured = .unknown, ttl: TimeSpan = .hours(24),
        maxProcessing: TimeSpan = .seconds(30)
    ) {
        self.header = header
        self.format = format
        self.honoured = honoured
        self.ttl = ttl
        self.maxProcessing = maxProcessing
    }
}
