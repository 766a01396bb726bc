// The SOCKS 5 listener with curl: the rules of the proxy for requests, decrypted hosts and tunnels (docs/guide/clients.md#socks).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct SocksTests {
    @Test(arguments: ["--socks5-hostname", "--socks5"]) func requestsAreCachedAndQueued(way: String) async throws {
        let socks = "127.0.0.1:\(FreePort.next())"
        try await World.with(proxy: ["socks": .string(socks)]) { world in
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes"
            try await #expect(Curl.send("GET", url + "/1", options: [way, socks]).status == 200)
            await world.goOffline()
            let stored = try await Curl.send("GET", url + "/1", options: [way, socks])
            #expect(stored.status == 200 && stored.json?["title"] == "first" && stored["cache-status"]?.contains("hit") == true)
            let write = try await Curl.send(
                "PATCH", url + "/1", fields: ["Content-Type: application/json"], body: #"{"title":"new"}"#, options: [way, socks])
            #expect(write.status == 202, "\(write.exit) \(write.text)")
            // A host that only `Host` names: an undeclared one that cannot be resolved.
            let miss = try await Curl.send("GET", "http://pool.invalid/", options: ["--socks5-hostname", socks])
            #expect([502, 504].contains(miss.status), "\(miss.status) \(miss.exit)")
        }
    }

    @Test(arguments: [true, false], ["--socks5-hostname", "--socks5"]) func tlsIsDecryptedOrPassed(
        isDecrypted: Bool, way: String
    ) async throws {
        let socks = "127.0.0.1:\(FreePort.next())"
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate())
        let server = try await ServerProcess.start(
            ServerSettings(
                upstream: site.port,
                [
                    "origin": .string("https://localhost:\(site.port)"), "intercept": .bool(isDecrypted),
                    "tls": ["ca_file": .string(authority.file)],
                ], proxy: ["socks": .string(socks), "connect_ports": [.number(JSONNumber(Int64(site.port)))]]))
        let trust = isDecrypted ? server.stateDirectory + "/ca/ca.pem" : authority.file
        let url = "https://localhost:\(site.port)/tide.json"
        let options = [way, socks, "--cacert", trust, "--ipv4"]
        let reply = try await Curl.send("GET", url, options: options)
        #expect(reply.status == 200 && reply.text.contains("low"), "\(reply.exit) \(reply.text) \(server.errors)")
        #expect((reply["via"] != nil) == isDecrypted)
        try await site.stop()
        let later = try await Curl.send("GET", url, options: options)
        #expect(isDecrypted ? later.status == 200 : later.exit != 0, "\(later.exit) \(later.text)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    @Test func whatTheProxyRefusesIsRefused() async throws {
        let socks = "127.0.0.1:\(FreePort.next())"
        let server = try await ServerProcess.start(ServerSettings(upstream: FreePort.next(), proxy: ["socks": .string(socks)]))
        for url in ["http://\(server.proxy)/", "http://localhost:25/", "https://localhost:22/"] {
            let reply = try await Curl.send("GET", url, options: ["--socks5-hostname", socks])
            #expect(reply.exit == 97, "\(url) \(reply.exit)")
        }
        // Two commands that are not answered, and a client that speaks something else.
        for command in [UInt8(2), 3] {
            let client = try await RawConnection.open(socks)
            try await client.send([5, 1, 0, 5, command, 0, 1, 127, 0, 0, 1, 0, 80])
            let answer = try await client.read(bytes: 4)
            #expect(answer == [5, 0, 5, 7], "\(answer)")
        }
        let http = try await RawConnection.open(socks)
        try await http.send("GET / HTTP/1.1\r\n\r\n")
        try await #expect(http.readToEnd().isEmpty)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
