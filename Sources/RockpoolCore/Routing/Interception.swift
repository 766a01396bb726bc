// Whether a CONNECT is passed on as it is or decrypted: nothing is, unless the owner has named it (contract §2 `intercept`).

/// What becomes of a tunnel, and why.
package enum Interception: String, Hashable, Sendable, CaseIterable {
    /// Decrypted: a declared upstream with `intercept: true`, or one that an entry of `proxy.intercept` names.
    case declared
    /// Decrypted: an entry of `proxy.intercept`, and the host is not declared.
    case listed
    /// Decrypted: `defaults.intercept` and the host is not declared.
    case everyHost
    /// Bytes are passed: declared, and not to be decrypted.
    case declaredOpaque
    /// Bytes are passed: nothing names the host.
    case notNamed

    /// Whether the bytes are decrypted.
    package var isDecrypted: Bool { self == .declared || self == .listed || self == .everyHost }

    /// Whether a client that does not trust our certificate gets a tunnel instead (security.md §4). Not to a declared
    /// upstream: its owner counts on every read being kept and every write being taken in, and a way around us would lose
    /// writes without a word the next time the upstream is away. There the client's own error stays, and says what to do.
    package var yields: Bool { self == .listed || self == .everyHost }
}

extension Configuration {
    /// What becomes of `CONNECT host:port`. `host` is lower case, an IPv6 address without brackets.
    package func interception(host: String, port: Int) -> Interception {
        let origin = OriginAddress(scheme: .https, host: host, port: port)
        let upstream = upstreams.first { $0.origin == origin }
        let isListed = proxy.intercept.contains { HostPattern($0)?.matches(host: host, port: port) == true }
        if let upstream { return upstream.intercept || isListed ? .declared : .declaredOpaque }
        if isListed { return .listed }
        return defaults.intercept ? .everyHost : .notNamed
    }

    /// Whether any tunnel is decrypted at all.
    package var interceptsAnything: Bool {
        defaults.intercept || !proxy.intercept.isEmpty || upstreams.contains { $0.intercept && $0.origin.scheme == .https }
    }
}
