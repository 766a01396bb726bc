// The key of `sign: { sigv4: … }`, from its file (docs/reference/configuration.md#upstreams).
import Crypto
import FoundationEssentials
package import RockpoolCore

extension SigV4Signer {
    /// Reads the secret. - Throws: `FileError` when the file cannot be read, or others may read it.
    package init(_ rule: SigV4Rule) throws {
        let secret = try PrivateFile.text(rule.secretFile)
        self.init(
            rule, secret: secret, digest: { Array(SHA256.hash(data: $0)) },
            code: { Array(HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: $1))) })
    }
}
