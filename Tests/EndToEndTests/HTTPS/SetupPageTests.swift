// `http://rockpool.local/` through the proxy, and `/setup` of the admin API (docs/guide/https.md#setup-page).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct SetupPageTests {
    private func page(_ server: ServerProcess, _ path: String, method: String = "GET") async throws -> Curl {
        try await Curl.send(method, "http://rockpool.local" + path, proxy: server.proxy)
    }

    @Test func thePageAndTheCertificateInEachForm() async throws {
        let server = try await ServerProcess.start(
            ServerSettings(upstream: FreePort.next(), ["origin": "https://api.test", "intercept": true]))
        let ca = server.stateDirectory + "/ca/ca.pem"
        for base in ["http://rockpool.local", "http://\(server.admin)/setup"] {
            let isProxied = base.contains("local")
            let get = { (path: String) in try await Curl.send("GET", base + path, proxy: isProxied ? server.proxy : nil) }
            let page = try await get(isProxied ? "/" : "")
            #expect(page.status == 200 && page["content-type"]?.hasPrefix("text/html") == true, "\(page.heads)")
            for part in ["ca.pem", "ca.crt", "ca.mobileconfig", "<svg", "https://rockpool.local/trusted.svg"] {
                #expect(page.text.contains(part))
            }
            let pem = try await get("/ca.pem")
            try #expect(pem.text == Files.text(of: ca))
            let der = try await get("/ca.crt")
            #expect(der["content-type"] == "application/x-x509-ca-cert" && der.body.first == 0x30)
            let encoded = Base64.encode(der.body)
            #expect(pem.text.filter { !$0.isNewline }.contains(encoded))
            let profile = try await get("/ca.mobileconfig")
            #expect(profile["content-type"] == "application/x-apple-aspen-config" && profile.text.contains("<data>\(encoded)</data>"))
            try await #expect(get("/other").status == 404)
        }
        try await #expect(server.stop() == .exit(0))
    }

    @Test func aClientThatTrustsTheCertificateIsShownSo() async throws {
        let server = try await ServerProcess.start(
            ServerSettings(upstream: FreePort.next(), ["origin": "https://api.test", "intercept": true]))
        let options = ["--proxy", "http://" + server.proxy, "--suppress-connect-headers"]
        let trusting = options + ["--cacert", server.stateDirectory + "/ca/ca.pem"]
        let mark = try await Curl.send("GET", "https://rockpool.local/trusted.svg", options: trusting)
        #expect(mark.status == 200 && mark["content-type"] == "image/svg+xml", "\(mark.exit)")
        try await #expect(Curl.send("GET", "https://rockpool.local/", options: trusting).text.contains("Yes: this page"))
        try await #expect(Curl.send("GET", "https://rockpool.local/trusted.svg", options: options).exit == 60)
        try await #expect(server.stop() == .exit(0))
    }

    @Test func nothingElseIsReachableThere() async throws {
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next()))
        for path in ["/v1/status", "/.well-known/rockpool/operations/1", "/ca.key", "/setup", "/../ca.pem"] {
            try await #expect(page(server, path).status == 404, "\(path)")
        }
        try await #expect(page(server, "/", method: "POST").status == 405)
        try await #expect(Curl.send("GET", "http://rockpool.local:8080/", proxy: server.proxy).status == 404)
        // Without an authority there is a page, and no certificate.
        try await #expect(page(server, "/").text.contains("rockpool ca init"))
        try await #expect(page(server, "/ca.pem").status == 404)
        try await #expect(server.stop() == .exit(0))
    }
}
