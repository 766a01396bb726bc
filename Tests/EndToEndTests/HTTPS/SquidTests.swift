// Parent proxies with a password: the real Squid, with Basic, Kerberos and NTLM (docs/guide/https.md#parent-proxies).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized, .enabled(if: SquidProcess.isInstalled, "squid is not installed")) struct SquidTests {
    /// The statuses of a request over HTTP, one to a decrypted host, and one in a tunnel.
    private func statuses(
        through squid: SquidProcess, auth: String, user: String?, password: String?, environment: [String: String] = [:]
    ) async throws -> [Int] {
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate())
        let origin = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nlow")
        }
        var via: [(name: String, value: JSONValue)] = [
            ("url", .string("http://localhost:\(squid.port)")), ("auth", .string(auth)),
        ]
        if let user { via.append(("user", .string(user))) }
        if let password {
            let file = try authority.scratch.write("\(password)\n", to: "password")
            try Files.setMode(0o600, of: file)
            via.append(("password_file", .string(file)))
        }
        let parent = JSONValue.object(JSONObject(via.map { ($0.name, $0.value) }))
        var settings = ServerSettings(upstream: origin.port, ["via": parent])
        settings.others = [
            [
                "name": "secure", "origin": .string("https://localhost:\(site.port)"), "intercept": true, "via": parent,
                "tls": ["ca_file": .string(authority.file)],
            ],
            ["name": "opaque", "origin": .string("https://127.0.0.1:\(site.port)"), "via": parent],
        ]
        let server = try ServerProcess.prepare(settings)
        try await server.start(environment: environment)
        let options = [
            "--proxy", "http://" + server.proxy, "--cacert", authority.file, "--suppress-connect-headers",
        ]
        let plain = try await Curl.send("GET", "http://127.0.0.1:\(origin.port)/", proxy: server.proxy)
        let decrypted = try await Curl.send(
            "GET", "https://localhost:\(site.port)/tide.json", options: options + ["--cacert", server.stateDirectory + "/ca/ca.pem"])
        let tunnel = try await Curl.send("GET", "https://127.0.0.1:\(site.port)/tide.json", options: options)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        try await site.stop()
        return [plain.status, decrypted.status, tunnel.status]
    }

    @Test(arguments: [("secret", 200), ("wrong", 0)]) func basic(password: String, status: Int) async throws {
        let squid = try await SquidProcess(.basic)
        let found = try await statuses(through: squid, auth: "basic", user: "ann", password: password)
        if status == 200 { #expect(found == [200, 200, 200]) } else { #expect(!found.contains(200), "\(found)") }
    }

    @Test func ntlm() async throws {
        let squid = try await SquidProcess(.ntlm)
        let found = try await statuses(through: squid, auth: "ntlm", user: "ann", password: "secret")
        #expect(found == [200, 200, 200])
    }

    /// With the ticket of the server's process, and without one.
    @Test(.enabled(if: KerberosRealm.isInstalled, "krb5-kdc is not installed")) func negotiate() async throws {
        let realm = try await KerberosRealm()
        let squid = try await SquidProcess(.negotiate(realm))
        let ticket = try await realm.ticket()
        let found = try await statuses(
            through: squid, auth: "negotiate", user: nil, password: nil,
            environment: realm.environment.merging(["KRB5CCNAME": ticket]) { $1 })
        #expect(found == [200, 200, 200])
        let without = try await statuses(
            through: squid, auth: "negotiate", user: nil, password: nil,
            environment: realm.environment.merging(["KRB5CCNAME": ticket + "-none"]) { $1 })
        #expect(!without.contains(200), "\(without)")
    }
}
