// The head of a plain write, kept while it takes the full path (docs/architecture.md#relays).
package import NIOCore
package import RockpoolCore

/// A plain write that takes the full path, kept until its response is known.
package struct PlainWriteCopy: Sendable {
    let write: PlainWrite
    let head: [UInt8]
    let listener: String

    /// - Parameter bytes: Readable from the request's first byte on.
    package init(_ write: PlainWrite, in bytes: ByteBuffer, listener: String) {
        head = Array(bytes.readableBytesView.prefix(write.head.count))
        (self.write, self.listener) = (write, listener)
    }

    func shape(isLocalClient: Bool) -> RequestShape {
        RequestShape(of: write, in: head.span, at: RequestShape.Arrival(listener: listener, isLocalClient: isLocalClient))
    }
}
