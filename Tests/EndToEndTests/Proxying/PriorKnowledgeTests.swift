// HTTP/2 by prior knowledge on the proxy's port: requests name their origin by `:authority` (RFC 9113 §3.3, §8.3.1;
// docs/guide/clients.md#forward-proxy).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)), .serialized) struct PriorKnowledgeTests {
    /// Sends a request for a URL over HTTP/2 on a connection to the proxy's port.
    private func send(_ method: String, _ url: String, through server: ServerProcess, body: String? = nil) async throws -> Curl {
        try await Curl.send(
            method, url, fields: body == nil ? [] : ["Content-Type: application/json"], body: body,
            options: ["--http2-prior-knowledge", "--connect-to", "::\(server.proxy)"])
    }

    @Test func theProxyTakesRequestsOverHTTP2() async throws {
        try await World.with { world in
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes"
            // More than once: the later ones may be answered by what is kept ready.
            for _ in 1...3 {
                let reply = try await send("\(url)/1", through: world.server)
                #expect(reply.status == 200 && reply.heads.last?.version == "HTTP/2", "\(reply.exit) \(reply.text)")
                #expect(reply.json?["title"]?.string == "first" && reply["cache-status"]?.hasPrefix("rockpool;") == true, "\(reply.heads)")
            }
            let made = try await send("POST", url, through: world.server, body: #"{"title":"third"}"#)
            #expect(made.status == 201 && world.arrivals("POST", "/v1/notes") == 1, "\(made.status) \(made.text)")
            // The same connection rules as of HTTP/1: Rockpool itself is no target.
            for address in [world.server.proxy, world.server.admin] {
                let reply = try await send("http://\(address)/v1/status", through: world.server)
                #expect((400..<500).contains(reply.status), "\(address): \(reply.status)")
            }
        }
    }

    private func send(_ url: String, through server: ServerProcess) async throws -> Curl {
        try await send("GET", url, through: server)
    }
}
