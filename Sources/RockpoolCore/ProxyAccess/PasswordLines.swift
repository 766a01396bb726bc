// The text of a password file: `name:hash` per line, as htpasswd and `rockpool proxy-password` write it (docs/guide/clients.md#passwords).

/// The names of a password file with their hashes, in the format of crypt(5).
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
