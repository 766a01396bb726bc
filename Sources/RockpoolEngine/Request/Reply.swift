// The response to a client, and what it reports when it has been sent (docs/architecture.md#journeys).
package import RockpoolCore

/// The response to the client.
package struct Reply: Sendable {
    package var head: ResponseHead
    package var body: ReplyBody
    package var trace: Trace
    /// True to close the connection (or reset the stream) in place of sending anything (`on_miss: close`).
    package var isWithheld = false
    /// The read that this is the answer to, if it was passed on and is not stored.
    var passed: PassedRead?
    /// Called once by the sender of the reply, when it has ended.
    package var ended: @Sendable (ReplyEnd) -> Void = { _ in }

    package init(head: ResponseHead, body: ReplyBody, trace: Trace) {
        self.head = head
        self.body = body
        self.trace = trace
    }
}
