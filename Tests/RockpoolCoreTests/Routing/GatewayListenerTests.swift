// The upstream of a request at a gateway that several share.
import RockpoolCore
import Testing

@Suite struct GatewayListenerTests {
    private static func upstream(_ name: String, host: String? = nil, path: String? = nil) -> Upstream {
        var upstream = Upstream(
            name: name, origin: OriginAddress(scheme: .https, host: "\(name).example"), gateway: "127.0.0.1:7630")
        upstream.gatewaySettings?.host = host
        upstream.gatewaySettings?.path = path
        return upstream
    }

    private let door = GatewayListener(
        listen: "127.0.0.1:7630",
        upstreams: [
            upstream("a", host: "a.localhost"), upstream("b", path: "/b"), upstream("c", path: "/b/c"),
            upstream("d", host: "d.test", path: "/x"),
        ])

    @Test(arguments: [
        ("a.localhost", "/b", "a /b"), ("localhost", "/b", "b /"), ("127.0.0.1", "/b?x", "b /?x"), ("localhost", "/b/1", "b /1"),
        ("localhost", "/b/c/1", "c /1"), ("localhost", "/b/cd", "b /cd"), ("localhost", "/bc", "404"), ("localhost", "/", "404"),
        ("d.test", "/x/y", "d /y"), ("d.test", "/y", "404"), ("evil.test", "/b", "421"), ("b.example", "/b/1", "b /b/1"),
        ("localhost", "*", "b *"), ("localhost", "/.well-known/rockpool/operations/1", "b /.well-known/rockpool/operations/1"),
        ("localhost", "/b/.well-known/rockpool/operations/1", "b /.well-known/rockpool/operations/1"),
    ])
    func hostThenLongestPath(host: String, path: String, expected: String) {
        do throws(Refusal) {
            let port = host.hasSuffix(".example") ? 443 : 7630
            let entrance = try door.entrance(host: host, port: port, path: path, at: "127.0.0.1:7630")
            #expect("\(entrance.upstream.name) \(entrance.target)" == expected)
        } catch { #expect("\(error.status)" == expected) }
    }

    @Test(arguments: [
        ("localhost", 7630, "/notes?x", "/api/v2/notes?x"), ("localhost", 7630, "/", "/api/v2/"), ("localhost", 7630, "*", "*"),
        ("localhost", 7630, "/.well-known/rockpool/operations/1", "/.well-known/rockpool/operations/1"),
        // By the origin's own name the client sends whole paths.
        ("e.example", 443, "/api/v2/notes", "/api/v2/notes"),
    ])
    func theOriginsPathStandsBeforeThatOfTheClient(host: String, port: Int, path: String, expected: String) throws {
        var upstream = Self.upstream("e")
        upstream.basePath = "/api/v2"
        let door = GatewayListener(listen: "127.0.0.1:7630", upstreams: [upstream])
        #expect(try door.entrance(host: host, port: port, path: path, at: "127.0.0.1:7630").target == expected)
        // With a path of the gateway, which it takes the place of.
        upstream.gatewaySettings?.path = "/e"
        let shared = GatewayListener(listen: "127.0.0.1:7630", upstreams: [upstream])
        #expect(try shared.entrance(host: "localhost", port: 7630, path: "/e/notes", at: "127.0.0.1:7630").target == "/api/v2/notes")
    }

    @Test func upstreamsOfOneAddressShareAListener() {
        var other = Self.upstream("e")
        other.gatewaySettings?.listen = "127.0.0.1:7631"
        var free = [Self.upstream("f"), Self.upstream("g")]
        for index in free.indices { free[index].gatewaySettings?.listen = "127.0.0.1:0" }
        let all = GatewayListener.all(of: door.upstreams + [other] + free)
        #expect(all.map { $0.upstreams.map(\.name).joined() } == ["abcd", "e", "f", "g"])
    }

    @Test func certificatesAreForKnownNamesOnly() {
        for name in ["a.localhost", "localhost", "127.0.0.1", "d.test", "b.example"] { #expect(door.names(name)) }
        for name in ["evil.test", "example", "10.0.0.1"] { #expect(!door.names(name)) }
    }
}
