// The bodies of one call to the admin socket, as libcurl moves them: buffered if small, else streamed (docs/reference/cli.md#calling).
import CCurl
import Foundation

/// The source of a streamed request body and the sink of a streamed response body. Called on the transfer's own thread.
struct AdminTransfer: Sendable {
    /// Writes the next bytes of the request's body into the buffer and returns their number; 0 ends the body.
    var source: (@Sendable (UnsafeMutableRawBufferPointer) throws -> Int)?
    /// Takes the next bytes of a 2xx response's body.
    var sink: (@Sendable (UnsafeRawBufferPointer) throws -> Void)?
}
