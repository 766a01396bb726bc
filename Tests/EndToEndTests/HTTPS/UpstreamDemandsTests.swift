// TLS requirements of an upstream, and the error when they are not met: with libcurl for requests, with Rockpool's own client for
// WebSockets.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct UpstreamDemandsTests {
    /// The two clients that connect to an upstream.
    enum Way: String, CaseIterable {
        case request, webSocket

        var fields: [String] { self == .request ? [] : ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: k"] }
    }

    /// Returns the reply of a server in front of `site`; for a failed request, checks that nothing was stored and that TLS is reported as
    /// the cause.
    private func answer(of site: SecureSite, _ way: Way, tls: JSONValue) async throws -> Curl {
        let server = try await ServerProcess.start(ServerSettings(upstream: site.port, ["origin": .string(site.url), "tls": tls]))
        let reply = try await Curl.send("GET", "http://\(server.gateway)/tide.json", fields: way.fields)
        if reply.status != 200, way == .request {
            let listed = try await server.command("cache", "ls", "--format", "json")
            #expect(try JSONValue.parse(Array(listed.output.utf8))["items"]?.array?.isEmpty == true, "\(listed.output)")
            let status = try await server.command("status", "--format", "json")
            #expect(status.output.contains("tls"), "\(status.output)")
        }
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        return reply
    }

    private func expectRefusal(_ reply: Curl, _ location: SourceLocation = #_sourceLocation) {
        expectProblem(reply, "upstream-error", 502, location)
        let status = reply["proxy-status"] ?? ""
        #expect(status.contains("rockpool; error=tls_certificate_error; next-hop="), "\(status)", sourceLocation: location)
        #expect(reply.json?["error"]?.string == "tls_certificate_error", "\(reply.text)", sourceLocation: location)
        #expect(reply.json?["upstream"]?.string == "notes" && !reply.text.contains("low"), "\(reply.text)", sourceLocation: location)
    }

    @Test(arguments: Way.allCases, [true, false]) func aClientCertificateIsShownWhereOneIsAskedFor(way: Way, isThere: Bool) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate(), clientsOf: authority.file)
        var tls: JSONValue = ["ca_file": .string(authority.file)]
        if isThere {
            let client = try await authority.certificate("DNS:client.test")
            tls = tls.merging(["client_cert": .string(client + ".pem"), "client_key": .string(client + ".key")])
        }
        let reply = try await answer(of: site, way, tls: tls)
        if isThere { #expect(reply.status == 200 && reply.text.contains("low"), "\(reply.text)") } else { expectRefusal(reply) }
        try await site.stop()
    }

    @Test(arguments: Way.allCases, ["1.2", "1.3"]) func anOlderVersionThanAllowedIsRefused(way: Way, least: String) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate(), latest: "1.2")
        let reply = try await answer(of: site, way, tls: ["ca_file": .string(authority.file), "min_version": .string(least)])
        if least == "1.2" { #expect(reply.status == 200 && reply.text.contains("low"), "\(reply.text)") } else { expectRefusal(reply) }
        try await site.stop()
    }

    @Test(arguments: ["DNS:other.test", "DNS:localhost"]) func aBadCertificateIsNamedForAWebSocketToo(names: String) async throws {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate(names))
        // A correct name with an untrusted authority, or a wrong name.
        let trust: JSONValue = names == "DNS:localhost" ? [:] : ["ca_file": .string(authority.file)]
        expectRefusal(try await answer(of: site, .webSocket, tls: trust))
        try await site.stop()
    }
}
