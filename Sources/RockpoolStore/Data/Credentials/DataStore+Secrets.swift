// The admin token and the names of identities (docs/reference/behaviour.md#files; docs/caching.md#partitions *Identity*).
import Crypto
import FoundationEssentials

extension DataStore {
    /// Returns the token required by changing calls of the admin API; created at the first call.
    /// - Throws: `.readableByOthers` when the file is accessible to other users, `.shortToken` when it contains a token short enough to
    ///   guess, `FileError`.
    package func adminToken() throws -> String {
        let token = try Secrets.secret("admin-token", in: directory)
        guard token.utf8.count >= Self.leastTokenBytes else { throw DataStoreError.shortToken(path: "\(directory)/admin-token") }
        return token
    }

    /// Minimum length of an admin token.
    static let leastTokenBytes = 32

    /// Returns the name of an identity: HMAC-SHA256 of a credential under this installation's key, in hexadecimal. The credential cannot be
    /// derived from it.
    package func identityName(_ credential: some Sequence<UInt8>) -> String {
        Digest.hex(HMAC<SHA256>.authenticationCode(for: Array(credential), using: SymmetricKey(data: installKey)))
    }
}
