// The secrets of an installation: files readable by this user only (docs/reference/behaviour.md#files; docs/caching.md#partitions
// *Identity*).
import Crypto
import FoundationEssentials
import Glibc
package import RockpoolCore

/// Random bytes in a file of mode 0600, created at first use.
enum Secrets {
    /// The key of the HMAC that turns a credential into a name.
    /// - Throws: `.noKey` for a file that holds fewer than 32 characters.
    static func installKey(in directory: String) throws -> [UInt8] {
        let key = Array(try secret("install-key", in: directory).utf8)
        guard key.count >= 32 else { throw DataStoreError.noKey(path: "\(directory)/install-key") }
        return key
    }

    /// Returns 64 hexadecimal digits. A crash never leaves a partial secret.
    static func secret(_ name: String, in directory: String) throws -> String {
        let path = "\(directory)/\(name)"
        if let status = FileStatus.of(path) {
            guard status.permissions & 0o077 == 0 else { throw DataStoreError.readableByOthers(path: path) }
            return String(decoding: try FileBytes.read(path), as: UTF8.self).trimmingSuffix(while: \.isWhitespace)
        }
        var random = SystemRandomNumberGenerator()
        let text = Digest.hex((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        try Paths.replace(name, in: directory, by: Array("\(text)\n".utf8))
        return text
    }
}

/// A secret in a file of the operator.
package enum PrivateFile {
    /// Returns the text without surrounding whitespace.
    /// - Throws: `.readableByOthers` when the file is accessible to other users, `FileError`.
    package static func text(_ path: String) throws -> String {
        let file = try Descriptor(path, O_RDONLY)
        guard let status = FileStatus.of(descriptor: file.number), status.permissions & 0o077 == 0 else {
            throw DataStoreError.readableByOthers(path: path)
        }
        let text = String(decoding: try FileBytes.read(path), as: UTF8.self)
        return String(text.drop(while: \.isWhitespace)).trimmingSuffix(while: \.isWhitespace)
    }
}

extension String {
    fileprivate func trimmingSuffix(while condition: (Character) -> Bool) -> String {
        var rest = self[...]
        while let last = rest.last, condition(last) { rest.removeLast() }
        return String(rest)
    }
}

// The admin token and the names of identities (docs/reference/behaviour.md#files; docs/caching.md#partitions *Identity*).
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

// The keys of the seal, from the installation's secret and the owner's key file (`storage.encrypt`, `storage.key_file`).
extension BodySeal {
    /// The seal of a stopped installation; nil when it has no secret yet, or the key file cannot be read.
    package static func kept(_ settings: StorageSettings) -> BodySeal? {
        guard let installKey = try? PrivateFile.text("\(settings.stateDir)/install-key"), !installKey.isEmpty else { return nil }
        return try? BodySeal(installKey: Array(installKey.utf8), settings)
    }

    /// - Throws: `.readableByOthers`, `.shortKey` or `FileError` for the key file.
    init(installKey: [UInt8], _ settings: StorageSettings) throws {
        let keyFile = try settings.keyFile.map { path in
            let text = try PrivateFile.text(path)
            guard text.utf8.count >= Self.leastKeyBytes else { throw DataStoreError.shortKey(path: path) }
            return text
        }
        self.init(installKey: installKey, keyFile: keyFile, mode: settings.encrypt)
    }
}

// The key of `sign: { sigv4: … }`, from its file (docs/reference/configuration.md#upstreams).
extension SigV4Signer {
    /// Reads the secret. - Throws: `FileError` when the file cannot be read, or others may read it.
    package init(_ rule: SigV4Rule) throws {
        let secret = try PrivateFile.text(rule.secretFile)
        self.init(
            rule, secret: secret, digest: { Array(SHA256.hash(data: $0)) },
            code: { Array(HMAC<SHA256>.authenticationCode(for: $0, using: SymmetricKey(data: $1))) })
    }
}

// The signing secrets of messages, from their file (docs/reference/configuration.md#notify).
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
