// Clients of a gateway never meet the origin's name: in live and stored answers, and in JSON where the configuration says so
// (docs/guide/clients.md#gateways).
import NIOCore
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

/// The bodies of requests that have arrived.
private final class SentBodies: Sendable {
    private let bodies = Mutex<[String]>([])

    var all: [String] { bodies.withLock(\.self) }

    func note(_ body: [UInt8]) { bodies.withLock { $0.append(String(decoding: body, as: UTF8.self)) } }
}

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

    /// - Parameter rewriting: `rewrite_bodies`; nil for the default.
    @Test(arguments: [nil, ["json-urls"], []] as [[String]?], ["max-age=60", "no-store"])
    func aClientStaysAtTheGateway(_ rewriting: [String]?, _ caching: String) async throws {
        let port = FreePort.next()
        let api = try await Self.api(on: port, caching)
        let server = try await ServerProcess.start(ServerSettings(upstream: port))
        if let rewriting {
            try await server.stop()
            let gateway: JSONValue = ["listen": .string(server.gateway), "rewrite_bodies": .array(rewriting.map { .string($0) })]
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
            #expect(reply.json?["self"]?.string == (rewriting != [] ? base : "http://127.0.0.1:\(port)") + "/v1/notes/1")
            #expect(reply.json?["title"]?.string == "see http://127.0.0.1:\(port)/")
        }
        let other = try await Curl.send("GET", "http://127.0.0.1:\(port)/v1/notes/1", proxy: server.proxy)
        #expect(other["location"] == "http://127.0.0.1:\(port)/v1/notes/1" && other.text.contains("\"http://127.0.0.1:\(port)/v1"))
        try await server.stop()
        await api.stop()
    }

    /// Replies whose links are replaced, and replies that keep their bytes: whole, in chunks, coded, polled and stored.
    @Test(arguments: ["max-age=60", "no-store"])
    func linksInJSONStayAtTheGateway(_ caching: String) async throws {
        let port = FreePort.next()
        let url = "http://127.0.0.1:\(port)"
        let link = #"{"next":"\#(url)/n?page=2","text":"see \#(url)/n","\#(url)/name":1}"#
        let seen = SentBodies()
        let api = try await RawServer.start(port: port) { connection in
            while true {
                let request = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let length = MessageHead(request)["content-length"].flatMap { Int($0) } ?? 0
                if length > 0 { seen.note(try await connection.read(bytes: length)) }
                let target = request.split(separator: " ").dropFirst().first ?? ""
                let start = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: \"a\"\r\nCache-Control: \(caching)\r\n"
                switch target.prefix(5) {
                case "/chun":
                    let chunks = link.map { "1\r\n\($0)\r\n" }.joined()
                    try await connection.send(start + "Transfer-Encoding: chunked\r\n\r\n\(chunks)0\r\n\r\n")
                case "/sign": try await connection.send(start + "X-Signature: x\r\nContent-Length: \(link.utf8.count)\r\n\r\n\(link)")
                case "/gzip":
                    let body = Array(gzipped(link).readableBytesView)
                    let head = start + "Content-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n"
                    try await connection.send(Array(head.utf8) + body)
                case "/none": try await connection.send(start + "Content-Length: 7\r\n\r\n{\"a\":1}")
                default: try await connection.send(start + "Content-Length: \(link.utf8.count)\r\n\r\n\(link)")
                }
            }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: port))
        let base = "http://\(server.gateway)"
        let expected = link.replacing("\(url)/n?page", with: "\(base)/n?page")
        for path in ["/whole", "/chunked", "/gzip"] {
            for _ in 1...4 {
                let reply = try await Curl.send("GET", base + path, fields: ["Accept-Encoding: gzip"])
                #expect(reply.status == 200 && reply.text == expected && reply["etag"] == "\"a\"", "\(path) \(reply.text)")
                #expect(reply["content-encoding"] == nil && reply["accept-ranges"] == "none")
            }
        }
        for _ in 1...4 {
            #expect(try await Curl.send("GET", base + "/signed").text == link)
            let plain = try await Curl.send("GET", base + "/none")
            #expect(plain.text == #"{"a":1}"# && plain["content-length"] == "7" && plain["accept-ranges"] != "none")
        }
        // A client sends back what it was shown, and the upstream gets its own URL.
        for _ in 1...3 {
            _ = try await Curl.send("POST", base + "/n", fields: ["Content-Type: application/json"], body: #"{"parent":"\#(base)/n/1"}"#)
        }
        #expect(seen.all == Array(repeating: #"{"parent":"\#(url)/n/1"}"#, count: 3), "\(seen.all)")
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
