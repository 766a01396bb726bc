// Names and passwords of the proxy's clients (RFC 7617; docs/security-model.md#proxy-passwords).

/// A name and a password, as a client of the proxy sent them.
package struct NameAndPassword: Hashable, Sendable {
    /// The longest name or password, in bytes: each check costs time.
    private static let longest = 512

    package let name: String
    package let password: String

    /// Nil for an empty or overlong name or password, and for control characters, which RFC 7617 §2 excludes.
    package init?(name: String, password: String) {
        let isPlain = { (text: String) in
            !text.isEmpty && text.utf8.count <= Self.longest && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        }
        guard isPlain(name), isPlain(password), !name.utf8.contains(UInt8(ascii: ":")) else { return nil }
        (self.name, self.password) = (name, password)
    }

    /// Reads a value of `Proxy-Authorization`; nil for another scheme and for what is no Basic credential.
    package init?(basic value: String) {
        let parts = value.split(separator: " ")
        guard parts.count == 2, parts[0].lowercased() == "basic", let bytes = Base64.decode(String(parts[1])),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        self.init(
            name: String(decoding: bytes[..<colon], as: UTF8.self), password: String(decoding: bytes[(colon + 1)...], as: UTF8.self))
    }
}

/// The names of a password file with their hashes, in the format of crypt(5), docs/guide/clients.md#passwords.
package struct PasswordLines: Hashable, Sendable {
    /// A line that cannot be used.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    /// bcrypt, yescrypt and SHA-2 with rounds. MD5, SHA-1 without salt and DES can be guessed too fast.
    private static let accepted = ["$2a$", "$2b$", "$2y$", "$y$", "$gy$", "$5$", "$6$"]

    package private(set) var hashes: [String: String] = [:]

    /// Reads a file; empty lines and lines that begin with `#` are skipped.
    package init(_ text: String) throws(Fault) {
        for (number, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.trimmed
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            guard let colon = line.firstIndex(of: ":"), let entry = NameAndPassword(name: String(line[..<colon]), password: "x") else {
                throw Fault(description: "line \(number + 1) is not name:hash")
            }
            let hash = String(line[line.index(after: colon)...])
            guard Self.accepted.contains(where: { hash.hasPrefix($0) }), hash.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                let how = "make the line with rockpool proxy-password, htpasswd -B or openssl passwd -6"
                throw Fault(description: "line \(number + 1) has no hash by bcrypt, yescrypt or SHA-2; \(how)")
            }
            guard hashes.updateValue(hash, forKey: entry.name) == nil else {
                throw Fault(description: "line \(number + 1) names \(entry.name) again")
            }
        }
    }

    /// Returns `text` with the line of `name` replaced, added, or removed if `hash` is nil. Other lines stay as they are.
    package static func replacing(_ name: String, by hash: String?, in text: String) -> String {
        var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        while lines.last?.isEmpty == true { lines.removeLast() }
        let place = lines.firstIndex { $0.hasPrefix(name + ":") }
        if let place { lines.remove(at: place) }
        if let hash { lines.insert("\(name):\(hash)", at: place ?? lines.count) }
        return lines.map { $0 + "\n" }.joined()
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var rest = drop(while: \.isWhitespace)
        while rest.last?.isWhitespace == true { rest.removeLast() }
        return rest
    }
}

/// Counts the attempts of each client within a window of time.
package struct AttemptLimit: Sendable {
    /// Attempts of one client per window.
    package static let attempts = 10
    package static let window = TimeSpan.minutes(1)
    /// Attempts that wait for their check at once, of all clients together.
    package static let waiting = 16
    /// Clients that are counted at once.
    private static let clients = 4000

    private var windows: [String: (began: Timestamp, count: Int)] = [:]
    private var checks = 0

    package init() {}

    /// Begins an attempt, to be ended by `end`. Returns the time to wait instead where the limit is reached.
    package mutating func begin(_ client: String, now: Timestamp) -> TimeSpan? {
        guard checks < Self.waiting else { return .seconds(1) }
        if windows.count >= Self.clients { windows = windows.filter { Self.isOpen($0.value.began, now) } }
        if let known = windows[client], Self.isOpen(known.began, now) {
            guard known.count < Self.attempts else { return known.began + Self.window - now }
            windows[client] = (known.began, known.count + 1)
        } else {
            guard windows.count < Self.clients else { return Self.window }
            windows[client] = (now, 1)
        }
        checks += 1
        return nil
    }

    /// Ends an attempt. A right password is not counted.
    package mutating func end(_ client: String, isRight: Bool) {
        checks -= 1
        guard isRight, let known = windows[client] else { return }
        windows[client] = known.count > 1 ? (known.began, known.count - 1) : nil
    }

    /// False also after the clock was set back.
    private static func isOpen(_ began: Timestamp, _ now: Timestamp) -> Bool { now >= began && now - began < window }
}
