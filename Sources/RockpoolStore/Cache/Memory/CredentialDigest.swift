// Names a credential without keeping it, so that a stored reply can be found by it (docs/architecture.md#parts *memory tier*).
import Crypto

/// The keyed digest of all fields of a request that may identify its principal, by their exact bytes. The key belongs to this process, so
/// that a digest says nothing about the credential elsewhere.
package struct CredentialDigest: Hashable, Sendable {
    private let bytes: [UInt8]

    /// - Parameter lines: The lines of the fields, from the name to the end of the value.
    package init(of lines: [UInt8]) { bytes = Array(HMAC<SHA256>.authenticationCode(for: lines, using: Self.key)) }

    private static let key = SymmetricKey(size: .bits256)
}
