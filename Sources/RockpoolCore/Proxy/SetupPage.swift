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

// MARK: - QR code

/// A QR code of a short text: byte mode, versions 1 to 5, error correction level L, mask 0 (ISO/IEC 18004).
/// Its modules; true is dark.
package struct QRCode: Hashable, Sendable {
    /// Codewords of data and of error correction by version, each in one block.
    private static let codewords: [(data: Int, correction: Int)] = [(19, 7), (34, 10), (55, 15), (80, 20), (108, 26)]

    /// Modules of a side.
    package let size: Int
    /// The rows.
    package private(set) var modules: [[Bool]]
    /// True for modules that hold no data.
    private var isFixed: [[Bool]]

    /// Nil for a text of more than 106 bytes.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let index = Self.codewords.firstIndex(where: { bytes.count <= $0.data - 2 }) else { return nil }
        size = 21 + 4 * index
        modules = Array(repeating: Array(repeating: false, count: size), count: size)
        isFixed = modules
        drawPatterns(version: index + 1)
        let data = Self.data(bytes, count: Self.codewords[index].data)
        draw(data + Self.correction(of: data, count: Self.codewords[index].correction))
    }

    /// The text with its header and padding (§7.4).
    private static func data(_ bytes: [UInt8], count: Int) -> [UInt8] {
        // The mode and the length take 12 bits, so that every byte is split into halves.
        var halves: [UInt8] = [0b0100, UInt8(bytes.count >> 4), UInt8(bytes.count & 15)]
        for byte in bytes {
            halves.append(byte >> 4)
            halves.append(byte & 15)
        }
        halves.append(0)
        var words: [UInt8] = []
        for index in stride(from: 0, to: halves.count, by: 2) { words.append(halves[index] << 4 | halves[index + 1]) }
        var pad: UInt8 = 0xEC
        while words.count < count {
            words.append(pad)
            pad = pad == 0xEC ? 0x11 : 0xEC
        }
        return Array(words.prefix(count))
    }

    // MARK: - Error correction

    /// The Reed-Solomon remainder over GF(2^8) with the polynomial 0x11D (§7.5).
    private static func correction(of data: [UInt8], count: Int) -> [UInt8] {
        var divisor = [UInt8](repeating: 0, count: count - 1) + [1]
        var root: UInt8 = 1
        for _ in 0..<count {
            for index in divisor.indices {
                divisor[index] = product(divisor[index], root) ^ (index + 1 < count ? divisor[index + 1] : 0)
            }
            root = product(root, 2)
        }
        var remainder = [UInt8](repeating: 0, count: count)
        for byte in data {
            let factor = byte ^ remainder.removeFirst()
            remainder.append(0)
            for index in remainder.indices { remainder[index] ^= product(divisor[index], factor) }
        }
        return remainder
    }

    private static func product(_ a: UInt8, _ b: UInt8) -> UInt8 {
        var result = 0
        for bit in stride(from: 7, through: 0, by: -1) {
            result = result << 1 ^ (result >> 7) * 0x11D
            result ^= (Int(b) >> bit & 1) * Int(a)
        }
        return UInt8(truncatingIfNeeded: result)
    }

    // MARK: - Modules

    private mutating func fix(_ row: Int, _ column: Int, isDark: Bool) {
        guard (0..<size).contains(row), (0..<size).contains(column) else { return }
        modules[row][column] = isDark
        isFixed[row][column] = true
    }

    private mutating func drawPatterns(version: Int) {
        for index in 0..<size {
            fix(6, index, isDark: index % 2 == 0)
            fix(index, 6, isDark: index % 2 == 0)
        }
        for (row, column) in [(3, 3), (3, size - 4), (size - 4, 3)] {
            for (dy, dx) in Self.square(4) { fix(row + dy, column + dx, isDark: ![2, 4].contains(max(abs(dy), abs(dx)))) }
        }
        if version > 1 {
            for (dy, dx) in Self.square(2) { fix(size - 7 + dy, size - 7 + dx, isDark: max(abs(dy), abs(dx)) != 1) }
        }
        drawFormat()
    }

    private static func square(_ radius: Int) -> [(Int, Int)] {
        (-radius...radius).flatMap { dy in (-radius...radius).map { (dy, $0) } }
    }

    /// Level L and mask 0, twice (§7.9).
    private mutating func drawFormat() {
        let format = 0b111_0111_1100_0100
        let bit = { (index: Int) in format >> index & 1 == 1 }
        for index in 0..<6 { fix(index, 8, isDark: bit(index)) }
        fix(7, 8, isDark: bit(6))
        fix(8, 8, isDark: bit(7))
        fix(8, 7, isDark: bit(8))
        for index in 9..<15 { fix(8, 14 - index, isDark: bit(index)) }
        for index in 0..<8 { fix(8, size - 1 - index, isDark: bit(index)) }
        for index in 8..<15 { fix(size - 15 + index, 8, isDark: bit(index)) }
        fix(size - 8, 8, isDark: true)
    }

    /// Places the bits in pairs of columns from the right, upwards and downwards in turn (§7.7.3), under mask 0.
    private mutating func draw(_ words: [UInt8]) {
        var index = 0
        var right = size - 1
        while right > 0 {
            if right == 6 { right = 5 }
            for step in 0..<size {
                for column in [right, right - 1] {
                    let isUpwards = (right + 1) & 2 == 0
                    let row = isUpwards ? size - 1 - step : step
                    guard !isFixed[row][column] else { continue }
                    let isSet = index < words.count * 8 && words[index / 8] >> (7 - index % 8) & 1 == 1
                    index += 1
                    modules[row][column] = isSet != ((row + column) % 2 == 0)
                }
            }
            right -= 2
        }
    }

    /// The code as an image with the quiet zone of four modules.
    package var svg: String {
        var path = ""
        for (row, line) in modules.enumerated() {
            for (column, isDark) in line.enumerated() where isDark { path += "M\(column + 4) \(row + 4)h1v1h-1z" }
        }
        let side = size + 8
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(side) \(side)\" width=\"220\" height=\"220\" role=\"img\" "
            + "aria-label=\"QR code of this page\"><rect width=\"\(side)\" height=\"\(side)\" fill=\"#fff\"/><path d=\"\(path)\"/></svg>"
    }
}
