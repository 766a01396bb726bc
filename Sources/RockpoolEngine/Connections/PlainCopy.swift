// A plain request, kept while it takes the full path (docs/architecture.md#parts *memory tier*).
package import NIOCore
package import RockpoolCore
import RockpoolStore

/// A plain request that takes the full path, kept until its response is known.
package struct PlainCopy: Sendable {
    let arrival: PlainArrival
    /// True if the listener changes no path, and leads all of them to one upstream.
    let keepsPath: Bool

    /// - Parameters:
    ///   - bytes: Readable from the request's first byte on.
    ///   - last: The last credential of the connection.
    package init(_ request: FastPathRequest, in bytes: ByteBuffer, listener: String, keepsPath: Bool = false, last: inout LastCredential) {
        self.keepsPath = keepsPath
        let credential = last.digest(of: request, in: bytes)
        arrival = PlainArrival(request, in: bytes, listener: listener, credential: credential).kept
    }

    /// The head.
    var head: ByteBuffer { ByteBuffer(bytes: arrival[0..<arrival.request.length]) }
}

/// A plain write that takes the full path, kept until its response is known (docs/architecture.md#relays).
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

/// The credential last received on a connection: its digest is computed once, however often the client repeats it.
package struct LastCredential: Sendable {
    private var lines: [UInt8] = []
    private var digest: CredentialDigest?

    package init() {}

    /// Returns the digest of the request's credential; nil without one.
    mutating func digest(of request: FastPathRequest, in bytes: ByteBuffer) -> CredentialDigest? {
        guard request.hasCredential else { return nil }
        let received = bytes.readableBytesUInt8Span
        if let digest, request.lines.hasCredential(lines, in: received) { return digest }
        lines = request.lines.credentialLines.flatMap { line in line.map { received[$0] } + [UInt8(ascii: "\n")] }
        let digest = CredentialDigest(of: lines)
        self.digest = digest
        return digest
    }
}
