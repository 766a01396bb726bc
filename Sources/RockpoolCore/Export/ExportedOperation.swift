// The data of one operation that every export format writes (docs/outbox.md#export).
import HTTPTypes

/// An operation with its body, as it would be sent, without credentials.
package struct ExportedOperation: Hashable, Sendable {
    /// The operation's row.
    package var operation: QueuedWrite
    /// The request with its idempotency key, without secrets.
    package var request: RequestHead
    /// The whole body.
    package var body: [UInt8]
    /// The start of its last attempt; nil when there was none.
    package var startedAt: Timestamp?
    /// The end of that attempt.
    package var endedAt: Timestamp?

    /// Removes the secrets from `request`.
    package init(_ operation: QueuedWrite, request: RequestHead, body: [UInt8], startedAt: Timestamp? = nil, endedAt: Timestamp? = nil) {
        self.operation = operation
        self.request = request
        self.request.fields = SecretFields.removed(from: request.fields)
        for name in Self.framing { self.request.fields[name] = nil }
        self.body = body
        self.startedAt = startedAt
        self.endedAt = endedAt
    }

    /// Fields that the client replaying the export generates itself.
    static let framing: [HTTPField.Name] = [.contentLength, .transferEncoding, .connection, .expect, .hostField]
}
