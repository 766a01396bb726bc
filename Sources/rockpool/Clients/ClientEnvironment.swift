// The variables by which clients find the proxy and trust it (contract §6 `rockpool env`).
import RockpoolCore

/// What a client's environment says.
struct ClientEnvironment: Hashable {
    /// `host:port` of the running proxy.
    var proxy: HostAndPort
    /// The system's authorities and ours, PEM; nil where there are none, and clients go by their own lists.
    var bundle: String?
    /// wget's settings, which name the bundle.
    var wgetrc: String?
    /// The same authorities as a Java key store; nil without Java.
    var javaTrust: String?
    /// `proxy.no_proxy`.
    var direct: [String]
    /// Options that Java is given already.
    var javaOptions: String?

    /// Names and values, in the order they are printed.
    var variables: [(name: String, value: String)] {
        let url = "http://\(proxy)"
        var variables = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"].map { (name: $0, value: url) }
        variables += ["no_proxy", "NO_PROXY"].map { (name: $0, value: direct.joined(separator: ",")) }
        if let bundle { variables += Self.trustNames.map { (name: $0, value: bundle) } }
        if let wgetrc { variables.append((name: "WGETRC", value: wgetrc)) }
        // Node reads the proxy variables since 22.21 and 24.
        variables.append((name: "NODE_USE_ENV_PROXY", value: "1"))
        if let javaTrust { variables.append((name: "JAVA_TOOL_OPTIONS", value: java(javaTrust))) }
        return variables
    }

    /// Each names a file of authorities, for: OpenSSL, Go and Ruby; curl; Python's requests; git; Node; pip; cargo; AWS; Deno; gRPC.
    private static let trustNames = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO",
        "AWS_CA_BUNDLE", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    ]

    private func java(_ trust: String) -> String {
        // Java's own list of exceptions would leave out this machine.
        let exceptions = direct.joined(separator: "|")
        let properties = [
            "http.proxyHost=\(proxy.host)", "http.proxyPort=\(proxy.port)", "https.proxyHost=\(proxy.host)",
            "https.proxyPort=\(proxy.port)",
            "http.nonProxyHosts=\(exceptions)", "javax.net.ssl.trustStore=\(trust)",
            "javax.net.ssl.trustStorePassword=\(JavaTrust.password)",
        ]
        // Java splits at spaces and takes quotes.
        let own = properties.map { "-D" + ($0.contains(" ") ? "'\($0)'" : $0) }
        let others = (javaOptions ?? "").split(separator: " ").filter { option in
            !properties.contains { option.hasPrefix("-D" + $0.prefix { $0 != "=" } + "=") }
        }
        return (others.map(String.init) + own).joined(separator: " ")
    }
}
