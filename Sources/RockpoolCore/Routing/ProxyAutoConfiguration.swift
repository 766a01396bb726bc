// Generates the proxy auto-configuration script for browsers (https://developer.mozilla.org PAC; docs/reference/admin-api.md#clients).

/// `/proxy.pac`, generated from the configuration.
package enum ProxyAutoConfiguration {
    /// The script. Declared HTTP origins and the decrypted hosts use `proxy` (`host:port`), or a direct connection if it does not respond;
    /// all other requests are direct, because a tunnel through the proxy would have no benefit.
    package static func script(_ configuration: Configuration, proxy: String) -> String {
        let way = "\"PROXY \(proxy); DIRECT\""
        let direct = configuration.proxy.noProxy.compactMap { condition($0) }.map { "  if (\($0)) return \"DIRECT\";" }
        let listed = configuration.proxy.intercept.compactMap { condition($0) }.map { "  if (secure && \($0)) return \(way);" }
        let declared = configuration.upstreams.filter { $0.origin.scheme == .http || $0.intercept }.map { upstream in
            let scheme = upstream.origin.scheme == .https ? "secure" : "!secure"
            return "  if (\(scheme) && host == \"\(upstream.origin.host)\" && port == \(upstream.origin.port)) return \(way);"
        }
        let others = configuration.defaults.intercept ? "secure ? \(way) : \"DIRECT\"" : "\"DIRECT\""
        let lines =
            [
                "function FindProxyForURL(url, host) {",
                #"  var parts = /^(\w+):\/\/(?:[^\/@]*@)?(?:\[[^\]]*\]|[^:\/]*)(?::(\d+))?/.exec(url) || [];"#,
                #"  var secure = parts[1] == "https" || parts[1] == "wss";"#,
                "  var port = Number(parts[2] || (secure ? 443 : 80));",
                #"  host = host.toLowerCase().replace(/^\[|\]$/g, "");"#,
                "  if (host == \"\(SetupDocument.host)\") return \(way);",
            ] + direct + declared + listed + ["  return \(others);", "}", ""]
        return lines.joined(separator: "\n")
    }

    /// The script's condition for the hosts of an entry; nil if the entry is invalid.
    private static func condition(_ entry: String) -> String? {
        guard HostPattern(entry) != nil else { return nil }
        let isBelow = entry.hasPrefix("*.")
        guard let authority = try? Authority.parse(entry.dropFirst(isBelow ? 2 : 0)) else { return nil }
        let name = isBelow ? "dnsDomainIs(host, \".\(authority.host)\")" : "host == \"\(authority.host)\""
        return authority.port.map { "\(name) && port == \($0)" } ?? name
    }
}
