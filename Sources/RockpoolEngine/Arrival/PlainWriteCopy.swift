// The head of a plain write, kept while it takes the full path (docs/architecture.md#relays).
package import NIOCore
package import RockpoolCore

/// What the next write of the same client has in common with a plain one.
package struct PlainWriteCopy: Sendable {
    /// The head up to the value of `Content-Length`, and from its end on.
    let before: [UInt8]
    let after: [UInt8]
    let listener: String

    /// - Parameter bytes: Readable from the request's first byte on.
    package init(_ write: PlainWrite, in bytes: ByteBuffer, listener: String) {
        let view = bytes.readableBytesView
        before = Array(view.prefix(write.before.count))
        after = Array(view.dropFirst(write.after.lowerBound).prefix(write.after.count))
        self.listener = listener
    }
}
