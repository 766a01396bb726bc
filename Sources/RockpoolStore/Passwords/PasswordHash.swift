// Salted hashes of passwords by crypt(3), which knows the formats of other programs too (crypt(5)).
import Glibc
import Synchronization

/// Makes and compares hashes of passwords. Each call takes some hundredths of a second: never on an event loop.
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
