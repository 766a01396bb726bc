// What a client of the proxy is known by (RFC 7617; docs/security-model.md#proxy-passwords).

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
