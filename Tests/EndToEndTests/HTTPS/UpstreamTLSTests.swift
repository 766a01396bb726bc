// Connections to the upstream: invalid certificates are refused, HTTP/2 is used, parent proxies are used
// (docs/reference/behaviour.md#reads).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct UpstreamTLSTests {
    private func get(_ world: SecureWorld, _ path: String = "/tide.json", options: [String] = []) async throws -> Curl {
        try await Curl.send(
            "GET", world.site.url + path,
            options: [
                "--proxy", "http://" + world.server.proxy, "--cacert", world.server.stateDirectory + "/ca/ca.pem",
                "--suppress-connect-headers",
            ] + options)
    }

    enum Bad: String, CaseIterable { case wrongHost, expired, untrusted }

    @Test(arguments: Bad.allCases) func aBadCertificateIsRefusedAndNothingIsStored(bad: Bad) async throws {
        try await SecureWorld.with(
            names: bad == .wrongHost ? "DNS:other.test" : "DNS:localhost", days: bad == .expired ? -1 : 30, trusts: bad != .untrusted
        ) { world in
            for _ in 0..<2 {
                let reply = try await get(world)
                expectProblem(reply, "upstream-error", 502)
                #expect(reply["proxy-status"]?.contains("error=tls_certificate_error") == true, "\(reply["proxy-status"] ?? "")")
                #expect(!reply.text.contains("low"))
            }
            let listed = try await world.server.command("cache", "ls", "--format", "json")
            #expect(try JSONValue.parse(Array(listed.output.utf8))["items"]?.array?.isEmpty == true, "\(listed.output)")
            let status = try await world.server.command("status", "--format", "json")
            #expect(status.output.contains("tls"), "\(status.output)")
        }
    }

    /// The common name is no identity, whatever other names the certificate has or lacks (RFC 9525 §2).
    @Test(arguments: ["", "email:a@localhost", "URI:https://localhost/", "DNS:other.test", "IP:127.0.0.1"])
    func aCommonNameIsNoIdentity(names: String) async throws {
        try await SecureWorld.with(names: names, commonName: "localhost") { world in
            for _ in 0..<2 {
                let reply = try await get(world)
                expectProblem(reply, "upstream-error", 502)
                #expect(reply["proxy-status"]?.contains("error=tls_certificate_error") == true, "\(reply["proxy-status"] ?? "")")
                if !names.contains("test"), !names.contains("IP:") {
                    #expect(reply.json?["detail"]?.string?.contains("subjectAltName") == true, "\(reply.text)")
                }
            }
            let upgrade = [
                "--http1.1", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13", "-H",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            ]
            expectProblem(try await get(world, options: upgrade), "upstream-error", 502)
        }
    }

    @Test func aGoodCopyIsNotServedForABadCertificate() async throws {
        try await SecureWorld.with { world in
            try await #expect(get(world).status == 200)
            try await world.site.stop()
            // Another server now listens on the port, with a certificate of another authority.
            let stranger = try await TestAuthority()
            let impostor = try await SecureSite(certificate: stranger.certificate(), port: world.site.port)
            let reply = try await get(world, options: ["-H", "Cache-Control: no-cache"])
            expectProblem(reply, "upstream-error", 502)
            #expect(reply["proxy-status"]?.contains("error=tls_certificate_error") == true)
            try await impostor.stop()
        }
    }

    @Test(.enabled(if: access("/usr/sbin/nginx", X_OK) == 0, "nginx is not installed"))
    func http2IsSpokenToAnUpstreamThatOffersIt() async throws {
        let authority = try await TestAuthority()
        let certificate = try await authority.certificate()
        let (port, scratch) = (FreePort.next(), try Scratch())
        let configuration = """
            daemon off; user root; pid \(scratch.path)/pid; error_log \(scratch.path)/error; events {}
            http {
              access_log off; client_body_temp_path \(scratch.path)/b; proxy_temp_path \(scratch.path)/p;
              fastcgi_temp_path \(scratch.path)/f; uwsgi_temp_path \(scratch.path)/u; scgi_temp_path \(scratch.path)/s;
              server {
                listen 127.0.0.1:\(port) ssl http2; ssl_certificate \(certificate).pem; ssl_certificate_key \(certificate).key;
                location / { add_header Cache-Control no-store; return 200 $server_protocol; }
                location /large { root \(scratch.path); }
              }
            }
            """
        let large = String(repeating: "0123456789abcdef", count: 500_000)
        try scratch.write(large, to: "large")
        let nginx = try await ChildProcess("/usr/sbin/nginx", ["-c", try scratch.write(configuration, to: "nginx.conf")])
        defer { nginx.signal(SIGTERM) }
        try await eventually("nginx") { try await Command.run("/usr/bin/curl", ["-sk", "https://127.0.0.1:\(port)/"]).status == 0 }
        let server = try await ServerProcess.start(
            ServerSettings(
                upstream: port,
                ["origin": .string("https://localhost:\(port)"), "intercept": true, "tls": ["ca_file": .string(authority.file)]]))
        let through = ["--proxy", "http://" + server.proxy, "--cacert", server.stateDirectory + "/ca/ca.pem", "--suppress-connect-headers"]
        let reply = try await Curl.send("GET", "https://localhost:\(port)/", options: through)
        #expect(reply.text == "HTTP/2.0", "\(reply.text)")
        let put = try await Curl.send("PUT", "https://localhost:\(port)/", body: String(repeating: "x", count: 300_000), options: through)
        #expect(put.status == 200)
        // A slow reader must not block another stream of the same connection.
        let slow = Task {
            try await Curl.send("GET", "https://localhost:\(port)/large", options: through + ["--limit-rate", "2M"], within: .seconds(60))
        }
        for _ in 0..<5 {
            let reply = try await Curl.send("GET", "https://localhost:\(port)/", options: through, within: .seconds(10))
            #expect(reply.text == "HTTP/2.0")
        }
        #expect(try await slow.value.text == large)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// One Rockpool server behind another: requests over TLS, and tunnels that are not decrypted.
    @Test(arguments: [true, false]) func aParentProxyIsUsedAndNoOtherWay(isDecrypted: Bool) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate())
        let parent = try await ServerProcess.start(ServerSettings(upstream: site.port, ["origin": .string(site.url)]))
        let server = try await ServerProcess.start(
            ServerSettings(
                upstream: site.port,
                [
                    "origin": .string(site.url), "intercept": .bool(isDecrypted), "via": .string("http://" + parent.proxy),
                    "tls": ["ca_file": .string(authority.file)],
                ]))
        let trust = isDecrypted ? server.stateDirectory + "/ca/ca.pem" : authority.file
        let options = ["--proxy", "http://" + server.proxy, "--cacert", trust, "--suppress-connect-headers"]
        let reply = try await Curl.send("GET", site.url + "/tide.json", options: options)
        #expect(reply.status == 200 && reply.text.contains("low"), "\(reply.text) \(reply.exit)")
        try await parent.stop()
        let alone = try await Curl.send("GET", site.url + "/other.json", options: options)
        #expect(isDecrypted ? alone.status == 504 : alone.exit == 56, "\(alone.status) \(alone.exit)")
        try await server.stop()
        try await site.stop()
    }
}
