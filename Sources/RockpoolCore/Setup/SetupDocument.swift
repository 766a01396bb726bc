// The documents of the setup page: the certificate in each form that clients install (docs/guide/https.md#setup-page).

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
