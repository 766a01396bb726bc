// Whether a CONNECT is passed on as it is or decrypted: nothing is, unless the owner has named it (contract §2 `intercept`).

/// What becomes of a tunnel, and why.
package enum Interception: String, Hashable, Sendable, CaseIterable {
    /// Decrypted: a declared upstream with `intercept: true`.
    case declared
    /// Decrypted: an entry of `proxy.intercept`.
    case listed
    /// Decrypted: `defaults.intercept` and the host is not declared.
    case everyHost
    /// Bytes are passed: declared, and not to be decrypted.
    case declaredOpaque
    /// Bytes are passed: nothing names the host.
    case notNamed

    /// Whether the bytes are decrypted.
    package var isDecrypted: Bool { self == .declared || self == .listed || self == .everyHost }
}

extension Configuration {
    /// What becomes of `CONNECT host:port`. `host` is lower case, an IPv6 address without brackets.
    package func interception(host: String, port: Int) -> Interception {
        let origin = OriginAddress(scheme: .https, host: host, port: port)
        let upstream = upstreams.first { $0.origin == origin }
        if upstream?.intercept == true { return .declared }
        if proxy.intercept.contains(where: { HostPattern($0)?.matches(host: host, port: port) == true }) { return .listed }
        if upstream != nil { return .declaredOpaque }
        return defaults.intercept ? .everyHost : .notNamed
    }

    /// Whether any tunnel is decrypted at all.
    package var interceptsAnything: Bool {
        defaults.intercept || !proxy.intercept.isEmpty || upstreams.contains { $0.intercept && $0.origin.scheme == .https }
    }
}
