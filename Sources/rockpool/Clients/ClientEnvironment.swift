// The environment variables that send clients through the proxy and make them trust it (docs/reference/cli.md#env `rockpool env`).
import RockpoolCore

/// The values from which a client's environment is made.
struct ClientEnvironment: Hashable {
    /// `host:port` of the running proxy.
    var proxy: HostAndPort
    /// PEM file with the system's authorities and Rockpool's; nil if there are none, and clients use their own lists.
    var bundle: String?
    /// A settings file for wget that names the bundle.
    var wgetrc: String?
    /// The same authorities as a Java key store; nil without Java.
    var javaTrust: String?
    /// The hosts of `proxy.no_proxy`.
    var direct: [String]
    /// The present value of `JAVA_TOOL_OPTIONS`.
    var javaOptions: String?

    /// Names and values, in the order of printing.
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

    /// Variables that name a file of authorities, for OpenSSL, Go and Ruby; curl; Python's requests; git; Node; pip; cargo; AWS; Deno;
    /// gRPC.
    private static let trustNames = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO",
        "AWS_CA_BUNDLE", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    ]

    private func java(_ trust: String) -> String {
        // Setting this list replaces Java's default exceptions, which include the loopback addresses.
        let exceptions = direct.joined(separator: "|")
        let properties = [
            "http.proxyHost=\(proxy.host)", "http.proxyPort=\(proxy.port)", "https.proxyHost=\(proxy.host)",
            "https.proxyPort=\(proxy.port)",
            "http.nonProxyHosts=\(exceptions)", "javax.net.ssl.trustStore=\(trust)",
            "javax.net.ssl.trustStorePassword=\(JavaTrust.password)",
        ]
        // Java splits the value at spaces and accepts quotes.
        let own = properties.map { "-D" + ($0.contains(" ") ? "'\($0)'" : $0) }
        let others = (javaOptions ?? "").split(separator: " ").filter { option in
            !properties.contains { option.hasPrefix("-D" + $0.prefix { $0 != "=" } + "=") }
        }
        return (others.map(String.init) + own).joined(separator: " ")
    }
}
