// The clients that the proxy admits by name and password, and the limit on wrong ones (docs/security-model.md#proxy-passwords).
import Logging
package import RockpoolCore
import RockpoolStore
import Synchronization

/// Judges names and passwords.
package final class ProxyPasswords: Sendable {
    /// What is known of a name and a password without comparing hashes.
    package enum Standing: Hashable, Sendable {
        case right
        /// To be compared by `verify`, once.
        case unproved
        /// Not compared now: too many attempts.
        case limited(seconds: Int64)
    }

    private let book: PasswordBook
    private let attempts = Mutex(AttemptLimit())
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    /// Names are counted in so many places, so that the table has a limit.
    private static let places = 1024

    init(_ settings: ProxyAuthentication, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        (book, self.logger, self.now) = (PasswordBook(settings.file), logger, now)
    }

    /// Passwords found right before are not limited, whatever else their client's address sends.
    ///
    /// - Parameter address: The client's address; nil for a client on this machine, which is counted by its name.
    package func standing(of given: NameAndPassword, from address: String?) -> Standing {
        if book.isProved(given) { return .right }
        let wait = attempts.withLock { $0.begin(client(given, address), now: now()) }
        guard let wait else { return .unproved }
        return .limited(seconds: max(1, (wait.milliseconds + 999) / 1000))
    }

    /// Compares hashes: slow, never on an event loop. Follows `Standing.unproved`.
    package func verify(_ given: NameAndPassword, from address: String?) -> Bool {
        let isRight = book.verify(given)
        attempts.withLock { $0.end(client(given, address), isRight: isRight) }
        if !isRight { logger.notice("a wrong name or password for the proxy from \(address ?? "this machine")") }
        return isRight
    }

    /// Programs of this machine share an address: one that keeps sending a wrong password must not lock out others. Names that the file does
    /// not have are counted like those that it has: otherwise the limit would list them.
    private func client(_ given: NameAndPassword, _ address: String?) -> String {
        address ?? "name \(UInt(bitPattern: given.name.hashValue) % UInt(Self.places))"
    }
}
