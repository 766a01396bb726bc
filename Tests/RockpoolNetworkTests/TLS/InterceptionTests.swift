// Decrypted HTTPS: curl through CONNECT to an upstream that is never dialled, over HTTP/1.1 and HTTP/2 (docs/reference/behaviour.md#https,
// docs/architecture.md#parts).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(2)), .serialized)
struct InterceptionTests {
    static let versions = ["--http1.1", "--http2"]

    @Test(arguments: versions)
    func aReadIsAnsweredAndThenFromTheCache(version: String) async throws {
        let pool = try await Pool.intercepting()
        for _ in 0..<2 {
            let reply = try await pool.curl(url, [version])
            #expect(reply.exit == 0 && reply.status == 200 && reply.text == "pearl")
        }
        #expect(pool.origin.sent.map(\.head.url) == ["https://api.test/a"])
        let head = try #require(pool.origin.sent.first).head
        #expect(head.fields[.via] == (version == "--http2" ? "2.0 pool" : "1.1 pool"))
    }

    private let url = "https://api.test/a"

    @Test func bothVersionsAreSpoken() async throws {
        let pool = try await Pool.intercepting()
        for (version, name) in [("--http1.1", "1.1"), ("--http2", "2")] {
            let scratch = try Scratch()
            let run = try await Command.run(
                "/usr/bin/curl",
                [
                    "-sS", "-o", scratch.path + "/body", "-w", "%{http_version}", "--proxy", "http://" + pool.proxy, "--cacert",
                    pool.trusted(), version, url,
                ])
            #expect(run.output == name, "\(run.errors)")
        }
    }

    /// TLS 1.2 offers only authenticated encryption (AEAD), the only kind in TLS 1.3 (RFC 9325 §4.2).
    @Test(arguments: [
        ("ECDHE-ECDSA-AES128-GCM-SHA256", true), ("ECDHE-ECDSA-AES256-GCM-SHA384", true), ("ECDHE-ECDSA-CHACHA20-POLY1305", true),
        ("ECDHE-ECDSA-AES128-SHA", false), ("ECDHE-ECDSA-AES256-SHA", false),
    ])
    func onlyAuthenticatedEncryptionIsOffered(suite: String, isOffered: Bool) async throws {
        let pool = try await Pool.intercepting()
        let reply = try await pool.curl(url, ["--tls-max", "1.2", "--ciphers", suite])
        #expect((reply.exit == 0 && reply.text == "pearl") == isOffered, "curl ended with status \(reply.exit)")
    }

    @Test(arguments: versions)
    func aLongBodyComesWholeFromUpstreamAndFromItsFile(version: String) async throws {
        let body = String(repeating: "0123456789abcdef", count: 200_000)
        let pool = try await Pool.intercepting(rule: { _ in .ok(body) })
        for _ in 0..<3 { #expect(try await pool.curl(url, [version]).text == body) }
        #expect(pool.origin.sent.count == 1)
    }

    @Test(arguments: versions)
    func aBodyGoesUpstream(version: String) async throws {
        let pool = try await Pool.intercepting(rule: { .status(201, [:], $0.text) })
        let body = String(repeating: "tide ", count: 100_000)
        let reply = try await pool.curl(url, [version], method: "PUT", body: body)
        #expect(reply.status == 201 && reply.text == body)
    }

    @Test(arguments: versions, ["GET", "DELETE"])
    func aBodyWithoutALengthIsNotLost(version: String, method: String) async throws {
        let pool = try await Pool.intercepting(rule: { .status(200, [.cacheControl: "no-store"], $0.text) })
        let reply = try await pool.curl(
            url, [version, "-H", "Content-Length:", "-H", "Transfer-Encoding: chunked"], method: method, body: "shells")
        #expect(reply.text == "shells", "\(reply.status)")
    }

    @Test(arguments: versions)
    func aHeadHasNoBody(version: String) async throws {
        let pool = try await Pool.intercepting()
        let reply = try await pool.curl(url, [version], method: "HEAD")
        #expect(reply.exit == 0 && reply.status == 200 && reply["content-length"] == "5")
    }

    @Test(arguments: versions)
    func itWorksWithTheUpstreamAway(version: String) async throws {
        let pool = try await Pool.intercepting()
        #expect(try await pool.curl(url, [version]).text == "pearl")
        pool.origin.answers { _ in .refused }
        pool.scripted.clock.advance(by: .hours(1))
        let stale = try await pool.curl(url, [version])
        #expect(stale.text == "pearl" && stale["cache-status"]?.contains("detail=offline") == true, "\(stale["cache-status"] ?? "")")
        #expect(try await pool.curl("https://api.test/never", [version]).status == 504)
        let write = try await pool.curl(url, [version], method: "POST", body: "kept")
        #expect(write.status == 202 && write["rockpool-operation"] != nil)
    }

    @Test(arguments: versions, ["evil.test", "api.test:444"])
    func aRequestForAnotherAuthorityIsMisdirected(version: String, host: String) async throws {
        let pool = try await Pool.intercepting()
        let reply = try await pool.curl(url, [version, "-H", "Host: \(host)"])
        #expect(
            reply.status == 421 && reply.json?["type"] == "urn:rockpool:problem:misdirected" && pool.origin.sent.isEmpty, "\(reply.text)")
    }

    @Test(arguments: [
        ("https://api.test/a", 200), ("https://api.test:443/a", 200), ("http://api.test/a", 421), ("https://evil.test/a", 421),
    ])
    func anAbsoluteTargetMayNameThisOriginOnly(target: String, status: Int) async throws {
        let pool = try await Pool.intercepting()
        let client = try await pool.tunnel()
        try await client.send("GET \(target) HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await client.response().head.status == status)
    }

    @Test func aTunnelWithinATunnelIsRefused() async throws {
        let pool = try await Pool.intercepting()
        let client = try await pool.tunnel()
        try await client.send("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
        #expect(try await client.response().head.status == 405)
    }

    /// The certificate follows the client's SNI if that host may be decrypted too; the host for the requests is that of CONNECT.
    @Test func anotherNameInTheHelloGetsItsCertificateAndNoMore() async throws {
        let pool = try await Pool.intercepting { $0.proxy.intercept = ["other.test"] }
        let client = try await pool.tunnel(sni: "other.test")
        try await client.send("GET /a HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(try await client.response().head.status == 421)
        let own = try await pool.tunnel(sni: "other.test")
        try await own.send("GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await own.response().head.status == 200)
    }

    @Test func aNameThatNothingHasNamedGetsNoCertificate() async throws {
        let pool = try await Pool.intercepting()
        await #expect(throws: (any Error).self) {
            let client = try await pool.tunnel(sni: "bank.test")
            try await client.send("GET /a HTTP/1.1\r\nHost: bank.test\r\n\r\n")
            _ = try await client.response()
        }
    }

    @Test func withoutAnyNameTheCertificateIsForTheTunnelsHost() async throws {
        let pool = try await Pool.intercepting { $0.proxy.intercept = ["127.0.0.1:8443"] }
        let reply = try await pool.curl("https://127.0.0.1:8443/a", [])
        #expect(reply.exit == 0 && reply.text == "pearl" && pool.origin.sent.first?.head.url == "https://127.0.0.1:8443/a")
    }

    @Test func manyRequestsShareAConnectionAndHitsAreHot() async throws {
        let pool = try await Pool.intercepting()
        let client = try await pool.tunnel()
        for _ in 0..<20 {
            try await client.send("GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n")
            #expect(try await client.response().body == "pearl")
        }
        // Hot hits belong to one tunnel: the same request bytes mean another host in another tunnel.
        let other = try await Pool.intercepting { $0.proxy.intercept = ["other.test"] }
        for (host, count) in [("api.test", 1), ("other.test", 2)] {
            let client = try await other.tunnel(to: host + ":443", sni: host)
            for _ in 0..<3 {
                try await client.send("GET /a HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                #expect(try await client.response().head.status == 200)
            }
            #expect(other.origin.sent.count == count)
        }
    }

    @Test func aTunnelToAnotherHostIsNotDecrypted() async throws {
        let far = try await RawServer.start { try await $0.send("as it is") }
        let pool = try await Pool.intercepting { $0.proxy.connectPorts = [far.port] }
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("CONNECT 127.0.0.1:\(far.port) HTTP/1.1\r\nHost: 127.0.0.1:\(far.port)\r\n\r\n")
        _ = try await client.read(through: "\r\n\r\n")
        #expect(try await client.readToEnd() == "as it is")
    }

    @Test func aPortNoTunnelMayLeadToIsNotDecryptedEither() async throws {
        let pool = try await Pool.intercepting { $0.proxy.intercept = ["*.test"] }
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("CONNECT mail.test:25 HTTP/1.1\r\nHost: mail.test:25\r\n\r\n")
        #expect(try await client.response().head.status == 403)
    }

    /// The absolute form of the same host name (RFC 3986 §3.2.2).
    @Test func aHostWithADotAtItsEndIsTheSameHost() async throws {
        let pool = try await Pool.intercepting()
        for host in ["api.test.", "api.test"] {
            let client = try await pool.tunnel(to: host + ":443")
            try await client.send("GET /a HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(try await client.response().body == "pearl")
        }
        #expect(pool.origin.sent.map(\.head.url) == ["https://api.test/a"], "one cache key, and the upstream URL agrees with it")
    }

    // MARK: trust

    @Test(arguments: ["1.2", "1.3"]) func aClientThatDoesNotTrustUsIsRememberedUntilItDoes(version: String) async throws {
        let pool = try await Pool.intercepting()
        let reply = try await pool.curl(url, ["--tls-max", version], trusts: false)
        #expect(reply.exit == 60)
        try await eventually("the refusal is noted") { !pool.engine.untrusting.list.isEmpty }
        let noted = try #require(pool.engine.untrusting.list.first)
        #expect(noted.host == "api.test" && noted.client == "127.0.0.1" && noted.alert == "unknown_ca" && noted.count == 1)
        #expect(try await pool.curl(url).status == 200)
        #expect(pool.engine.untrusting.list.isEmpty)
    }

    @Test func aNewAuthorityCountsFromTheNextHandshakeOn() async throws {
        let pool = try await Pool.intercepting()
        let old = try pool.trusted()
        #expect(try await pool.curl(url).status == 200)
        let scratch = try Scratch()
        let kept = try scratch.write(Files.text(of: old), to: "old.pem")
        try pool.authority.replace(with: .make(host: "test", now: pool.scripted.clock.now))
        #expect(try await pool.curl(url).status == 200)
        #expect(try await pool.curl(url, ["--cacert", kept], trusts: false).exit == 60)
    }

    // MARK: limits

    @Test(arguments: ["", "\u{16}\u{03}\u{01}"])
    func aHandshakeThatDoesNotEndIsEnded(beginning: String) async throws {
        let pool = try await Pool.intercepting { $0.proxy.timeouts.head = .milliseconds(200) }
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
        _ = try await client.read(through: "\r\n\r\n")
        if !beginning.isEmpty { try await client.send(beginning) }
        #expect(try await client.readToEnd(within: .seconds(10)) == "")
    }

    @Test func oldProtocolsAreRefused() async throws {
        let pool = try await Pool.intercepting()
        #expect(try await pool.curl(url, ["--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"]).exit == 35)
        #expect(try await pool.curl(url, ["--tlsv1.2", "--tls-max", "1.2"]).status == 200)
        #expect(try await pool.curl(url, ["--tlsv1.3"]).status == 200)
    }

    @Test func drainEndsDecryptedConnections() async throws {
        let pool = try await Pool.intercepting()
        let client = try await pool.tunnel()
        try await client.send("GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n")
        _ = try await client.response()
        await pool.listeners.drain(within: .seconds(5))
        #expect(pool.listeners.connections.count == 0)
    }
}
