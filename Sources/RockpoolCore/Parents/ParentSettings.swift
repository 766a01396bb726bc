// The settings of a parent proxy (docs/reference/configuration.md#parent-proxy).

/// The parent proxy of an upstream, and how Rockpool proves its identity to it.
package struct ParentSettings: Hashable, Sendable {
    /// How one of several parents is chosen.
    package enum Choice: String, CaseIterable, Sendable, Codable {
        /// The first that answers.
        case order
        /// In turn, as often as their weights say.
        case weight
    }

    /// The method of the proof, which libcurl carries out.
    package enum Authentication: String, CaseIterable, Sendable, Codable { case none, basic, negotiate, ntlm }

    /// `http://host:port`, `https://…`, `socks5://…` or `socks5h://…`.
    package var url: String
    package var auth = Authentication.none
    package var user: String?
    /// File of mode 0600 whose first line is the password.
    package var passwordFile: String?
    /// Its share of the requests with `choose: weight`, 1…1000.
    package var weight = 1
    package var choose = Choice.order
    /// Further parents for the same hosts, of which only address, proof and weight count.
    package var others: [ParentSettings] = []

    package init(url: String) { self.url = url }

    /// This parent and the further ones, in their order.
    package var all: [ParentSettings] { [self] + others }
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
