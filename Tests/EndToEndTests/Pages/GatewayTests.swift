// Clients of a gateway never meet the origin's name: in live and stored answers, and in JSON where the configuration says so
// (docs/guide/clients.md#gateways).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite struct GatewayTests {
    /// An upstream whose answers name it in every way.
    private static func api(on port: Int, _ caching: String) async throws -> RawServer {
        let url = "http://127.0.0.1:\(port)"
        let body = #"{"self":"\#(url)/v1/notes/1","title":"see \#(url)/"}"#
        let head = [
            "HTTP/1.1 200 OK", "Content-Type: application/json", "Cache-Control: \(caching)", "Content-Location: \(url)/v1/notes/1",
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

    @Test(arguments: [false, true], ["max-age=60", "no-store"])
    func aClientStaysAtTheGateway(_ rewritesBodies: Bool, _ caching: String) async throws {
        let port = FreePort.next()
        let api = try await Self.api(on: port, caching)
        let server = try await ServerProcess.start(ServerSettings(upstream: port))
        if rewritesBodies {
            try await server.stop()
            let gateway: JSONValue = ["listen": .string(server.gateway), "rewrite_bodies": ["json-urls"]]
            try server.configure(ServerSettings(upstream: port, ["gateway": gateway]))
            try await server.start()
        }
        let base = "http://\(server.gateway)"
        // One URL again and again, then new ones.
        for round in 1...16 {
            let reply = try await Curl.send("GET", base + "/v1/notes/\(max(1, round - 8))")
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

    /// A single-page app that is served through the gateway follows `Location` and `Link`, and is never led to the origin.
    @Test(.enabled(if: !BrowserKind.installed.isEmpty, "no browser is installed: make clients"), arguments: BrowserKind.installed)
    func anAppThatFollowsLinksStaysAtTheGateway(_ kind: BrowserKind) async throws {
        let port = FreePort.next()
        let api = try await Self.app(on: port)
        let server = try await ServerProcess.start(ServerSettings(upstream: port))
        let base = "http://\(server.gateway)"
        let window = try await kind.window()
        try await window.open(base + "/")
        let walk = """
            (async () => {
              const visited = [], told = [];
              const follow = async (url, options) => {
                const reply = await fetch(url, options);
                visited.push(reply.url);
                for (const [name, value] of reply.headers) told.push(name + ': ' + value);
                return reply;
              };
              const created = await follow('/v1/notes', {method: 'POST', body: 'x'});
              await follow(created.headers.get('location'));
              let next = '/v1/notes?page=1';
              for (let page = 0; next && page < 10; page++) {
                const link = (await follow(next)).headers.get('link');
                next = link?.match(/<([^>]+)>; rel="next"/)?.[1];
              }
              await follow('/old');
              return {visited, told, cookie: document.cookie};
            })()
            """
        for isAway in [false, true] {
            if isAway {
                await api.stop()
                _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
            }
            let seen = try await window.evaluate(walk)
            var visited = seen["visited"]?.array?.compactMap(\.string) ?? []
            // Offline, the new item is the document of the queued write.
            if isAway, visited.count > 1 { #expect(visited.remove(at: 1).hasPrefix(base + "/.well-known/rockpool/operations/")) }
            let item = isAway ? [] : ["/v1/notes/1"]
            let paths = ["/v1/notes"] + item + ["/v1/notes?page=1", "/v1/notes?page=2", "/v1/notes?page=3", "/v1/notes/1"]
            #expect(visited == paths.map { base + $0 }, "\(seen)")
            let told = seen["told"]?.array?.compactMap(\.string) ?? []
            #expect(told.contains { $0.hasPrefix("link: <\(base)/") } && !told.contains { $0.contains(":\(port)/") }, "\(told)")
            #expect(seen["cookie"] == "a=b")
        }
        try await #expect(server.stop() == .exit(0))
    }

    /// An upstream with a page, a list of three pages, an item and a redirect, which all name the upstream.
    private static func app(on port: Int) async throws -> RawServer {
        let url = "http://127.0.0.1:\(port)"
        return try await RawServer.answering(on: port) { request in
            let target = request.split(separator: " ").dropFirst().first ?? ""
            let (status, field) =
                switch target {
                case "/old": ("301 Moved Permanently", "Location: \(url)/v1/notes/1")
                case "/v1/notes": ("201 Created", "Location: \(url)/v1/notes/1")
                case "/v1/notes?page=1": ("200 OK", "Link: <\(url)/v1/notes?page=2>; rel=\"next\"")
                case "/v1/notes?page=2": ("200 OK", "Link: <\(url)/v1/notes?page=3>; rel=\"next\"")
                default: ("200 OK", "Content-Location: \(url)\(target)")
                }
            let cookie = target == "/" ? "Set-Cookie: a=b; Domain=127.0.0.1; Secure; SameSite=None\r\n" : ""
            return "HTTP/1.1 \(status)\r\nContent-Type: text/html\r\nCache-Control: max-age=60\r\n\(field)\r\n\(cookie)"
                + "Content-Length: 19\r\n\r\n<title>page</title>"
        }
    }
}
