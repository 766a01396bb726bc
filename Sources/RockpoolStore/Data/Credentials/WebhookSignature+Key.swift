// The signing secrets of messages, from their file (docs/reference/configuration.md#notify).
import Crypto
import FoundationEssentials
package import RockpoolCore

extension WebhookSignature {
    /// Reads the secrets.
    /// - Throws: `FileError` when the file cannot be read, `DataStoreError` when others may read it, `UnusableSecret`.
    package init(secretFile path: String) throws {
        let text = try PrivateFile.text(path)
        let signature = WebhookSignature(
            secrets: text, code: { Array(HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: $1))) })
        guard let signature else { throw UnusableSecret(path: path) }
        self = signature
    }
}

/// Thrown for a file without a usable signing secret.
package struct UnusableSecret: Error, CustomStringConvertible {
    package var path: String
    package var description: String { "\(path) holds no secret: one line each, whsec_ and base64, or any other text" }
}
