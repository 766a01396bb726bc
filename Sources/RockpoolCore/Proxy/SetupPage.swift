// The setup page: plain HTML without scripts (docs/guide/https.md#setup-page).

extension SetupContent {
    var page: String {
        """
        <!DOCTYPE html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Rockpool: set up this \
        device</title><style>\(Self.style)</style></head><body>
        <h1>Set up this device</h1>
        <p>Rockpool keeps web services usable while the network is away. To do so over HTTPS it decrypts the hosts that its configuration \
        names, and this device must trust its certificate.</p>
        <h2>Does this device trust it?</h2>
        <p id="trust">\(trust)</p>
        \(pem == nil ? "<p>There is no certificate yet. Make one with <code>rockpool ca init</code>.</p>" : steps)
        <h2>Another device</h2>
        <p>Open this page there: <a href="\(Self.escaped(url))">\(Self.escaped(url))</a></p>
        \(QRCode(url)?.svg ?? "")
        </body></html>

        """
    }

    private var trust: String {
        if isTrusted { return "Yes: this page came with a certificate of Rockpool." }
        return "<img src=\"https://\(SetupDocument.host)/trusted.svg\" width=\"260\" height=\"28\" "
            + "alt=\"Not yet, or this page was not opened through the proxy.\">"
    }

    private var steps: String {
        let link = { (document: SetupDocument, text: String) in "<a href=\"\(self.base)\(document.rawValue)\">\(text)</a>" }
        let items = [
            (
                "iPhone, iPad",
                "Open the \(link(.profile, "profile")), allow the download, then Settings, General, VPN &amp; Device Management. "
                    + "Last: Settings, General, About, Certificate Trust Settings, switch it on."
            ),
            (
                "Android",
                "Download the \(link(.der, "certificate (DER)")), then Settings, Security, Encryption &amp; credentials, Install a certificate, "
                    + "CA certificate."
            ),
            ("macOS", "Open the \(link(.profile, "profile")), then System Settings, Privacy &amp; Security, Profiles."),
            (
                "Windows",
                "Open the \(link(.der, "certificate (DER)")), Install Certificate, Local Machine, the store Trusted Root Certification "
                    + "Authorities."
            ),
            (
                "Linux",
                "Save the \(link(.pem, "certificate (PEM)")) as <code>/usr/local/share/ca-certificates/rockpool.crt</code> and run "
                    + "<code>sudo update-ca-certificates</code>. On the machine of Rockpool: <code>rockpool ca install</code>."
            ),
            (
                "Firefox",
                "Settings, Privacy &amp; Security, Certificates, View Certificates, Import the \(link(.pem, "certificate (PEM)"))."
            ),
        ]
        return "<h2>Trust the certificate</h2><dl>"
            + items.map { "<dt>\($0.0)</dt><dd>\($0.1)</dd>" }.joined() + "</dl>"
            + "<p>PEM: \(link(.pem, "ca.pem")) · DER: \(link(.der, "ca.crt")) · Apple: \(link(.profile, "ca.mobileconfig"))</p>"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
    }

    private static let style =
        "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}dt{font-weight:600;margin-top:.6rem}"
        + "dd{margin-left:0}code{background:#8881;padding:0 .2em}"
}

/// One document at `http://rockpool.local/` and at `/setup` of the admin API.
package enum SetupDocument: String, CaseIterable, Sendable {
    case page = "/"
    case pem = "/ca.pem"
    /// DER, for Android and Windows.
    case der = "/ca.crt"
    /// A configuration profile, for iOS and macOS.
    case profile = "/ca.mobileconfig"
    /// An image that only clients see that trust the certificate.
    case mark = "/trusted.svg"

    /// The host that the proxy answers itself.
    package static let host = "rockpool.local"

    /// The page's path in the admin API.
    package static let adminPath = "/setup"
    /// The paths of the page and its files there.
    package static let adminPaths = Set([adminPath] + allCases.filter { $0 != .page && $0 != .mark }.map { adminPath + $0.rawValue })

    package var mediaType: String {
        switch self {
        case .page: "text/html; charset=utf-8"
        case .pem: "application/x-pem-file"
        case .der: "application/x-x509-ca-cert"
        case .profile: "application/x-apple-aspen-config"
        case .mark: "image/svg+xml"
        }
    }

    /// The name under which a client saves it; nil for what is displayed.
    package var fileName: String? {
        switch self {
        case .pem: "rockpool-ca.pem"
        case .der: "rockpool-ca.crt"
        case .profile: "rockpool.mobileconfig"
        case .page, .mark: nil
        }
    }

    /// A page shows images of the proxy only, and runs no script.
    package static let policy =
        "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' https://rockpool.local; base-uri 'none'; form-action 'none'; "
        + "frame-ancestors 'none'"
}

/// The contents of the documents.
package struct SetupContent: Sendable {
    /// The certificate in PEM; nil if there is no authority.
    package var pem: String?
    /// The page's own URL, which the QR code shows.
    package var url: String
    /// True if the page was read through TLS with a certificate of the authority.
    package var isTrusted: Bool
    /// The path before the names of the documents.
    package var base: String

    package init(pem: String?, url: String, isTrusted: Bool = false, base: String = "") {
        (self.pem, self.url, self.isTrusted, self.base) = (pem, url, isTrusted, base)
    }

    /// The bytes of a document; nil if it needs an authority and there is none.
    package func bytes(of document: SetupDocument) -> [UInt8]? {
        switch document {
        case .page: Array(page.utf8)
        case .mark: Array(Self.mark.utf8)
        case .pem: pem.map { Array($0.utf8) }
        case .der: der
        case .profile: der.map { Array(Self.profile($0).utf8) }
        }
    }

    private var der: [UInt8]? {
        guard let pem else { return nil }
        let lines = pem.split(whereSeparator: \.isNewline)
        guard let begin = lines.firstIndex(of: "-----BEGIN CERTIFICATE-----"), let end = lines.firstIndex(of: "-----END CERTIFICATE-----"),
            begin < end
        else { return nil }
        return Base64.decode(lines[(begin + 1)..<end].joined())
    }

    private static let mark = """
        <svg xmlns="http://www.w3.org/2000/svg" width="260" height="28"><rect width="260" height="28" rx="6" fill="#1a7f37"/>\
        <text x="12" y="19" font-family="sans-serif" font-size="14" fill="#fff">This client trusts the certificate</text></svg>
        """

    /// Identifiers from the certificate, so that a second installation replaces the first.
    private static func profile(_ der: [UInt8]) -> String {
        var hash = FNV1a()
        hash.add(der)
        let digits = String(hash.value, radix: 16, uppercase: true)
        let hex = String(repeating: "0", count: 16 - digits.count) + digits
        let identifier = { (kind: String) in "00000000-\(hex.prefix(4))-4\(hex.dropFirst(4).prefix(3))-8000-\(hex.suffix(9))00\(kind)" }
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict>
            <key>PayloadContent</key><array><dict>
            <key>PayloadCertificateFileName</key><string>rockpool-ca.crt</string>
            <key>PayloadContent</key><data>\(Base64.encode(der))</data>
            <key>PayloadDisplayName</key><string>Rockpool certificate authority</string>
            <key>PayloadIdentifier</key><string>local.rockpool.ca.root</string>
            <key>PayloadType</key><string>com.apple.security.root</string>
            <key>PayloadUUID</key><string>\(identifier("B"))</string>
            <key>PayloadVersion</key><integer>1</integer>
            </dict></array>
            <key>PayloadDisplayName</key><string>Rockpool</string>
            <key>PayloadDescription</key><string>Lets this device trust the certificates of one Rockpool.</string>
            <key>PayloadIdentifier</key><string>local.rockpool.ca</string>
            <key>PayloadRemovalDisallowed</key><false/>
            <key>PayloadType</key><string>Configuration</string>
            <key>PayloadUUID</key><string>\(identifier("A"))</string>
            <key>PayloadVersion</key><integer>1</integer>
            </dict></plist>

            """
    }
}

/// `/proxy.pac`, generated from the configuration (https://developer.mozilla.org PAC; docs/reference/admin-api.md#clients).
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
