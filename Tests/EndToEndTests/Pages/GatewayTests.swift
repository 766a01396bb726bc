// Clients of a gateway never meet the origin's name: in live and stored answers, and in JSON where the configuration says so
// (docs/guide/clients.md#gateways).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct GatewayTests {
    /// An upstream whose answers name it in every way.
    private static func api(on port: Int) async throws -> RawServer {
        let url = "http://127.0.0.1:\(port)"
        let body = #"{"self":"\#(url)/v1/notes/1","title":"see \#(url)/"}"#
        let head = [
            "HTTP/1.1 200 OK", "Content-Type: application/json", "Cache-Control: max-age=60", "Content-Location: \(url)/v1/notes/1",
            "Link: <\(url)/v1/notes?page=2>; rel=\"next\"", "Refresh: 5; url=\(url)/", "Location: \(url)/v1/notes/1",
            "Set-Cookie: a=b; Domain=127.0.0.1; Secure; SameSite=None", "Content-Length: \(body.utf8.count)",
        ].joined(separator: "\r\n")
        return try await RawServer.start(port: port) { connection in
            while true {
                _ = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                try await connection.send(head + "\r\n\r\n" + body)
            }
        }
    }

    @Test(arguments: [false, true]) func aClientStaysAtTheGateway(_ rewritesBodies: Bool) async throws {
        let port = FreePort.next()
        let api = try await Self.api(on: port)
        let server = try await ServerProcess.start(ServerSettings(upstream: port))
        if rewritesBodies {
            try await server.stop()
            let gateway: JSONValue = ["listen": .string(server.gateway), "rewrite_bodies": ["json-urls"]]
            try server.configure(ServerSettings(upstream: port, ["gateway": gateway]))
            try await server.start()
        }
        let base = "http://\(server.gateway)"
        for _ in 1...4 {
            let reply = try await Curl.send("GET", base + "/v1/notes/1")
            #expect(reply.status == 200 && reply["content-location"] == base + "/v1/notes/1" && reply["location"] == base + "/v1/notes/1")
            #expect(reply["link"] == "<\(base)/v1/notes?page=2>; rel=\"next\"" && reply["refresh"] == "5; url=\(base)/")
            if let cookie = reply["set-cookie"] { #expect(cookie == "a=b") }
            #expect(reply.json?["self"]?.string == (rewritesBodies ? base : "http://127.0.0.1:\(port)") + "/v1/notes/1")
            #expect(reply.json?["title"]?.string == "see http://127.0.0.1:\(port)/")
        }
        let other = try await Curl.send("GET", "http://127.0.0.1:\(port)/v1/notes/1", proxy: server.proxy)
        #expect(other["location"] == "http://127.0.0.1:\(port)/v1/notes/1" && other.text.contains("\"http://127.0.0.1:\(port)/v1"))
        try await server.stop()
        await api.stop()
    }
}
