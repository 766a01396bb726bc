// The environment variables that send clients through the proxy and make them trust it (docs/reference/cli.md#env `rockpool env`).
import ArgumentParser
import Foundation
import RockpoolCore

/// The values from which a client's environment is made.
struct ClientEnvironment: Hashable {
    /// `host:port` of the running proxy.
    var proxy: HostAndPort
    /// The name and the password that the proxy wants, for its URL; nil if it wants none.
    var login: ProxyLogin?
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
    /// True if Java is installed: it gets the proxy also without a key store.
    var hasJava = false
    /// A settings file for apt that names proxy and bundle.
    var aptConfig: String?
    /// A directory with settings for PHP that name the bundle.
    var phpDirectory: String?
    /// The present value of `PHP_INI_SCAN_DIR`.
    var phpDirectories: String?
    /// The agent that Node preloads.
    var nodeAgent: String?
    /// The present value of `NODE_OPTIONS`.
    var nodeOptions: String?
    /// The hosts that the user's `no_proxy` and `NO_PROXY` name.
    var ownExceptions: [String] = []

    /// The proxy as clients read it from a variable.
    var proxyURL: String { "http://\(login.map { $0.userinfo + "@" } ?? "")\(proxy)" }

    /// Names and values, in the order of printing.
    var variables: [(name: String, value: String)] {
        let url = proxyURL
        var variables = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"].map { (name: $0, value: url) }
        variables += ["no_proxy", "NO_PROXY"].map { (name: $0, value: exceptions.joined(separator: ",")) }
        if let bundle { variables += Self.trustNames.map { (name: $0, value: bundle) } }
        if let wgetrc { variables.append((name: "WGETRC", value: wgetrc)) }
        if let aptConfig { variables.append((name: "APT_CONFIG", value: aptConfig)) }
        if let phpDirectory { variables.append((name: "PHP_INI_SCAN_DIR", value: php(phpDirectory))) }
        // Settings of npm in these variables win over its files.
        variables += Self.npmProxyNames.map { (name: $0, value: url) }
        // Node reads the proxy variables since 22.21 and 24.5; the agent does it for older versions.
        variables.append((name: "NODE_USE_ENV_PROXY", value: "1"))
        if let nodeAgent { variables.append((name: "NODE_OPTIONS", value: node(nodeAgent))) }
        if hasJava || javaTrust != nil { variables.append((name: "JAVA_TOOL_OPTIONS", value: java(javaTrust))) }
        return variables
    }

    /// Every name that `variables` may set.
    static let names =
        ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY"] + trustNames
        + npmProxyNames + ["WGETRC", "APT_CONFIG", "PHP_INI_SCAN_DIR", "NODE_USE_ENV_PROXY", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS"]

    /// The configured exceptions, then the user's.
    private var exceptions: [String] {
        var seen: Set<String> = []
        return (direct + ownExceptions).filter { seen.insert($0).inserted }
    }

    /// The hosts in a value of `no_proxy`.
    static func hosts(in value: String?) -> [String] { (value ?? "").split { $0 == "," || $0 == " " }.map(String.init) }

    private func node(_ agent: String) -> String {
        let option = NodeAgent.option(agent)
        let others = (nodeOptions ?? "").replacing(option, with: "").split(separator: " ").map(String.init)
        return (others + [option]).joined(separator: " ")
    }

    /// An empty part stands for PHP's own directory.
    private func php(_ directory: String) -> String { Self.withoutPHP(directory, in: phpDirectories ?? "") + ":" + directory }

    /// The user's part of a value of `PHP_INI_SCAN_DIR`.
    static func withoutPHP(_ directory: String, in value: String) -> String {
        value.hasSuffix(":" + directory) ? String(value.dropLast(directory.count + 1)) : value
    }

    private static let npmProxyNames = ["npm_config_proxy", "npm_config_https_proxy"]

    /// Variables that name a file of authorities, for OpenSSL, Go, Ruby, .NET and PHP; curl; Python's requests; git; Node and Bun; pip;
    /// cargo; AWS; Deno; gRPC; npm; Ruby's Bundler; PHP's Composer.
    private static let trustNames = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO",
        "AWS_CA_BUNDLE", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "npm_config_cafile", "BUNDLE_SSL_CA_CERT", "COMPOSER_CAFILE",
    ]

    /// False for a variable that a program cannot use: rclone 1.60 (Debian 12) fails with `AWS_CA_BUNDLE`, and reads `SSL_CERT_FILE` as well.
    static func isUnderstood(_ name: String, by program: String) -> Bool {
        name != "AWS_CA_BUNDLE" || program.split(separator: "/").last != "rclone"
    }

    private func java(_ trust: String?) -> String {
        // Setting this list replaces Java's default exceptions, which include the loopback addresses.
        let exceptions = exceptions.map { $0.hasPrefix(".") ? "*" + $0 : $0 }.joined(separator: "|")
        var properties = [
            "http.proxyHost=\(proxy.host)", "http.proxyPort=\(proxy.port)", "https.proxyHost=\(proxy.host)",
            "https.proxyPort=\(proxy.port)", "http.nonProxyHosts=\(exceptions)",
        ]
        if let trust {
            properties += ["javax.net.ssl.trustStore=\(trust)", "javax.net.ssl.trustStorePassword=\(JavaTrust.password)"]
        }
        // Java splits the value at spaces and accepts quotes.
        let own = properties.map { "-D" + ($0.contains(" ") ? "'\($0)'" : $0) }
        return (Self.withoutOurs(javaOptions) + own).joined(separator: " ")
    }

    /// The options of a value of `JAVA_TOOL_OPTIONS` that Rockpool does not set.
    static func withoutOurs(_ javaOptions: String?) -> [String] {
        let ours = [
            "http.proxyHost", "http.proxyPort", "https.proxyHost", "https.proxyPort", "http.nonProxyHosts", "javax.net.ssl.trustStore",
            "javax.net.ssl.trustStorePassword",
        ]
        return (javaOptions ?? "").split(separator: " ").map(String.init).filter { option in
            !ours.contains { option.hasPrefix("-D\($0)=") || option.hasPrefix("'-D\($0)=") }
        }
    }
}

/// `rockpool env --unset`: takes back what `rockpool env` has set (docs/reference/cli.md#env).
extension ClientEnvironment {
    /// What becomes of each variable: a value that the user had before, or nil where it is removed.
    ///
    /// - Parameters:
    ///   - environment: The present variables.
    ///   - trust: Knows the files that ours were made from.
    ///   - direct: The hosts of `proxy.no_proxy`.
    static func undone(_ environment: [String: String], _ trust: TrustFiles, direct: [String]) -> [(name: String, value: String?)] {
        names.map { name in (name, environment[name].flatMap { before(name, value: $0, trust: trust, direct: direct) }) }
    }

    private static func before(_ name: String, value: String, trust: TrustFiles, direct: [String]) -> String? {
        let rest: String?
        switch name {
        case "no_proxy", "NO_PROXY": rest = hosts(in: value).filter { !direct.contains($0) }.joined(separator: ",")
        case "NODE_OPTIONS": rest = value.replacing(NodeAgent.option(trust.nodeAgentPath), with: "").trimmingCharacters(in: .whitespaces)
        case "PHP_INI_SCAN_DIR": rest = withoutPHP(trust.phpDirectory, in: value)
        case "JAVA_TOOL_OPTIONS": rest = withoutOurs(value).joined(separator: " ")
        case "SSL_CERT_FILE": rest = trust.chosen(by: name).flatMap { trust.systemBundles.contains($0) ? nil : $0 }
        case "WGETRC", "APT_CONFIG":
            rest = trust.chosen(by: name).flatMap { $0 == trust.usualWgetrc ? nil : $0 }
        default: rest = nil
        }
        return rest?.isEmpty == false ? rest : nil
    }
}

/// The supported shells.
enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash, zsh, sh, fish, powershell

    /// The shell named in `SHELL`, else `sh`.
    init(environment: [String: String]) {
        let name = environment["SHELL"]?.split(separator: "/").last.map(String.init) ?? ""
        self = Shell(rawValue: name) ?? .sh
    }

    /// A line that removes a variable.
    func unset(_ name: String) -> String {
        switch self {
        case .bash, .zsh, .sh: "unset \(name)"
        case .fish: "set -e \(name)"
        case .powershell: "Remove-Item Env:\(name) -ErrorAction SilentlyContinue"
        }
    }

    /// A line that sets and exports a variable.
    func export(_ name: String, as value: String) -> String {
        switch self {
        case .bash, .zsh, .sh: "export \(name)=\(ShellWord.quote(value))"
        case .fish: "set -gx \(name) '\(value.escaping(["\\": "\\\\", "'": "\\'"]))'"
        case .powershell: "$env:\(name) = '\(value.escaping(["'": "''"]))'"
        }
    }
}

/// A proxy of the environment by which other programs of this machine reach an origin (docs/guide/https.md#parent-proxies).
struct EnvironmentProxy: Hashable {
    /// Its URL without a credential.
    let url: String

    /// Nil without one, and for a proxy on this machine, which is most likely Rockpool itself.
    init?(for origin: OriginAddress, in environment: [String: String]) {
        let names = origin.scheme == .https ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        guard let value = (names + ["all_proxy", "ALL_PROXY"]).lazy.compactMap({ environment[$0] }).first(where: { !$0.isEmpty }),
            var parts = URLComponents(string: value.contains("://") ? value : "http://\(value)"), let host = parts.host,
            !OriginAddress.isLoopback(host)
        else { return nil }
        (parts.user, parts.password) = (nil, nil)
        guard let url = parts.string else { return nil }
        self.url = url
    }

    /// What to do where an upstream cannot be reached.
    var advice: String { "the environment names the proxy \(url): if it is the way out, give it to the upstream: via: { url: \"\(url)\" }" }
}
