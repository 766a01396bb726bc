// The file of `proxy.auth`, read again when it changes, and the passwords that were found right (docs/security-model.md#proxy-passwords).
import Crypto
import Glibc
package import RockpoolCore
import Synchronization

/// The passwords of the proxy's clients.
package final class PasswordBook: Sendable {
    /// The identity of a version of the file.
    private struct Version: Hashable {
        var device, inode: UInt64
        var size, seconds, nanoseconds: Int64
    }

    private struct State {
        var version: Version?
        var lines: PasswordLines?
        /// Keyed digests of names and passwords that this version of the file accepted.
        var proved: Set<[UInt8]> = []
    }

    private let path: String
    private let key = SymmetricKey(size: .bits256)
    private let state = Mutex(State())

    /// A file that cannot be used admits nobody.
    package init(_ path: String) { self.path = path }

    /// Reads a file of `name:hash` lines.
    ///
    /// - Throws: `PasswordLines.Fault` if other users can write it or a line is wrong, `FileError`.
    package static func read(_ path: String) throws -> PasswordLines {
        let file = try Descriptor(path, O_RDONLY)
        guard let status = FileStatus.of(descriptor: file.number), status.permissions & 0o022 == 0 else {
            throw PasswordLines.Fault(description: "\(path) can be written by other users; chmod go-w \(path)")
        }
        return try PasswordLines(String(decoding: try FileBytes.read(path), as: UTF8.self))
    }

    /// True if this name and password were found right since the file last changed. Costs one `stat` call.
    package func isProved(_ given: NameAndPassword) -> Bool {
        let digest = digest(of: given)
        let version = version()
        return state.withLock { $0.version == version && version != nil && $0.proved.contains(digest) }
    }

    /// Compares a password with its hash: slow, and as slow for an unknown name, which takes the time that one of the file takes.
    package func verify(_ given: NameAndPassword) -> Bool {
        guard let lines = current() else { return false }
        guard let hash = lines.hashes[given.name] else {
            let known = lines.hashes.values.sorted()
            let place = digest(of: given.name).prefix(4).reduce(0) { $0 << 8 | Int($1) }
            if !known.isEmpty { _ = PasswordHash.isRight(given.password, for: known[place % known.count]) }
            return false
        }
        guard PasswordHash.isRight(given.password, for: hash) else { return false }
        let digest = digest(of: given)
        state.withLock { if $0.lines == lines { $0.proved.insert(digest) } }
        return true
    }

    /// The lines of the present file; nil if it cannot be used, so that a damaged file admits nobody.
    private func current() -> PasswordLines? {
        let version = version()
        if let known = state.withLock({ $0.version == version ? $0.lines : nil }), version != nil { return known }
        let lines = try? Self.read(path)
        state.withLock { $0 = State(version: version, lines: lines) }
        return lines
    }

    private func version() -> Version? {
        var raw = stat()
        guard unsafe stat(path, &raw) == 0 else { return nil }
        return Version(
            device: UInt64(raw.st_dev), inode: UInt64(raw.st_ino), size: Int64(raw.st_size), seconds: Int64(raw.st_mtim.tv_sec),
            nanoseconds: Int64(raw.st_mtim.tv_nsec))
    }

    private func digest(of given: NameAndPassword) -> [UInt8] { digest(of: "\(given.name):\(given.password)") }

    private func digest(of text: String) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
    }
}

/// Makes and compares salted hashes of passwords by crypt(3), which knows the formats of other programs too (crypt(5)). Each call takes
/// some hundredths of a second: never on an event loop.
package enum PasswordHash {
    /// About 50 ms on a machine of 2020.
    private static let rounds = 100_000
    private static let saltAlphabet = Array("./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    /// crypt(3) has one buffer for the whole process.
    private static let turn = Mutex(())

    /// Returns a new hash by SHA-512 with 16 random characters of salt; nil if the system's library cannot make one.
    package static func make(of password: String) -> String? {
        var random = SystemRandomNumberGenerator()
        let salt = (0..<16).map { _ in saltAlphabet[Int.random(in: saltAlphabet.indices, using: &random)] }
        return hash(of: password, as: "$6$rounds=\(rounds)$" + String(salt))
    }

    /// True if `hash` was made of `password`. The time of the comparison does not depend on the place of a difference.
    static func isRight(_ password: String, for hash: String) -> Bool {
        guard let made = Self.hash(of: password, as: hash), made.utf8.count == hash.utf8.count else { return false }
        return zip(made.utf8, hash.utf8).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private static func hash(of password: String, as setting: String) -> String? {
        turn.withLock { _ in
            guard let text = unsafe crypt(password, setting) else { return nil }
            let hash = unsafe String(cString: text)
            // The mark of a failure.
            return hash.hasPrefix("*") ? nil : hash
        }
    }
}
