// The settings of a parent proxy (docs/reference/configuration.md#parent-proxy).

/// The parent proxy of an upstream, and how Rockpool proves its identity to it.
package struct ParentSettings: Hashable, Sendable {
    /// The method of the proof, which libcurl carries out.
    package enum Authentication: String, CaseIterable, Sendable, Codable { case none, basic, negotiate, ntlm }

    /// `http://host:port`, `https://…`, `socks5://…` or `socks5h://…`.
    package var url: String
    package var auth = Authentication.none
    package var user: String?
    /// File of mode 0600 whose first line is the password.
    package var passwordFile: String?

    package init(url: String) { self.url = url }
}

/// A name and a password for a parent proxy.
package struct ParentCredential: Hashable, Sendable {
    package let auth: ParentSettings.Authentication
    package let user: String
    package let password: String

    package init(auth: ParentSettings.Authentication, user: String, password: String) {
        (self.auth, self.user, self.password) = (auth, user, password)
    }

    /// The value of `Proxy-Authorization` for Basic (RFC 7617 §2).
    package var basic: String { "Basic " + Base64.encode(Array("\(user):\(password)".utf8)) }
}
