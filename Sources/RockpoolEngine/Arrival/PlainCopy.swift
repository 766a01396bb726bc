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
