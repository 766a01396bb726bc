// The credential of a connection, which most clients repeat in each request (docs/architecture.md#parts *memory tier*).
import NIOCore
import RockpoolCore
import RockpoolStore

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
