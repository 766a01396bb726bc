// The secrets of an installation: files readable by this user only (docs/reference/behaviour.md#files; docs/caching.md#partitions
// *Identity*).
import Crypto
import FoundationEssentials
import Glibc

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
