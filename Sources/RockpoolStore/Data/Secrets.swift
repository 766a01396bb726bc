// The few secrets of an installation: files that only we can read (contract §5, §6; design §5 *Identity*).
import Crypto
import FoundationEssentials
import Glibc

/// Random bytes kept in a file of mode 0600, made when first asked for.
enum Secrets {
    /// The key under which credentials become names.
    static func installKey(in directory: String) throws -> [UInt8] {
        Array(try secret("install-key", in: directory).utf8)
    }

    /// 64 hexadecimal digits. Written beside and renamed, so that a crash never leaves half of one.
    static func secret(_ name: String, in directory: String) throws -> String {
        let path = "\(directory)/\(name)"
        if let status = FileStatus.of(path) {
            guard status.permissions & 0o077 == 0 else { throw DataStoreError.readableByOthers(path: path) }
            return String(decoding: try FileBytes.read(path), as: UTF8.self).trimmingSuffix(while: \.isWhitespace)
        }
        var random = SystemRandomNumberGenerator()
        let text = Digest.hex((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) })
        let temporary = "\(path).new"
        Paths.remove(temporary)
        let file = try Descriptor.create(temporary)
        try file.write(all: Array("\(text)\n".utf8))
        try file.synchronize()
        try Paths.move(temporary, to: path)
        try Paths.synchronizeDirectory(directory)
        return text
    }
}

/// A secret that the owner keeps in a file of their own.
package enum PrivateFile {
    /// The text without the space around it.
    /// - Throws: `.readableByOthers` when the file is open to others, `FileError`.
    package static func text(_ path: String) throws -> String {
        let file = try Descriptor(path, O_RDONLY)
        guard let status = FileStatus.of(descriptor: file.number), status.permissions & 0o077 == 0 else {
            throw DataStoreError.readableByOthers(path: path)
        }
        let text = String(decoding: try FileBytes.read(path), as: UTF8.self)
        return String(text.drop(while: \.isWhitespace)).trimmingSuffix(while: \.isWhitespace)
    }
}

extension DataStore {
    /// What changing calls of the admin API carry; made at the first call.
    /// - Throws: `.readableByOthers` when the file is open to others, `.shortToken` when somebody has put a token into it that can be
    ///   guessed, `FileError`.
    package func adminToken() throws -> String {
        let token = try Secrets.secret("admin-token", in: directory)
        guard token.utf8.count >= Self.leastTokenBytes else { throw DataStoreError.shortToken(path: "\(directory)/admin-token") }
        return token
    }

    /// Of an admin token.
    static let leastTokenBytes = 32

    /// The name of an identity: HMAC-SHA256 of a credential under this installation's key, in hexadecimal. The credential cannot be
    /// had back from it.
    package func identityName(_ credential: some Sequence<UInt8>) -> String {
        Digest.hex(HMAC<SHA256>.authenticationCode(for: Array(credential), using: SymmetricKey(data: installKey)))
    }
}

extension String {
    fileprivate func trimmingSuffix(while condition: (Character) -> Bool) -> String {
        var rest = self[...]
        while let last = rest.last, condition(last) { rest.removeLast() }
        return String(rest)
    }
}
