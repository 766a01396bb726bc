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
