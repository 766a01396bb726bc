// What an export writes of one operation, in whichever form (outbox.md §1.13).
import HTTPTypes

/// An operation with its body, as it would be sent, without credentials.
package struct ExportedOperation: Hashable, Sendable {
    /// Its row.
    package var operation: Operation
    /// The request with its idempotency key, and without any secret.
    package var request: RequestHead
    /// The whole body.
    package var body: [UInt8]
    /// When its last attempt began; nil when there was none.
    package var startedAt: Timestamp?
    /// When that ended.
    package var endedAt: Timestamp?

    /// Takes the secrets out of `request`.
    package init(_ operation: Operation, request: RequestHead, body: [UInt8], startedAt: Timestamp? = nil, endedAt: Timestamp? = nil) {
        self.operation = operation
        self.request = request
        self.request.fields = SecretFields.removed(from: request.fields)
        for name in Self.framing { self.request.fields[name] = nil }
        self.body = body
        self.startedAt = startedAt
        self.endedAt = endedAt
    }

    /// What whoever sends it says anew.
    private static let framing: [HTTPField.Name] = [.contentLength, .transferEncoding, .connection, .expect, .hostField]
}
