// The upstream's final answer to an operation (docs/outbox.md#schema).

/// The upstream's final answer.
package struct OperationResult: Hashable, Sendable {
    package var head: ResponseHead
    /// The first part of the body, at most 1 MiB.
    package var body: [UInt8]

    package init(head: ResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}
