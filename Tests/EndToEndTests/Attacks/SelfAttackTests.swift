// The proxy used against itself, this machine, and forbidden addresses (docs/security-model.md#proxy: SSRF, loops, rebinding).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct SelfAttackTests {
    /// Names and notations of this machine that resolvers and users accept.
    static let spellings = [
        "127.0.0.1", "localhost", "LOCALHOST", "localhost.", "foo.localhost", "127.0.0.2", "127.1", "127.0.1", "2130706433", "0x7f000001",
        "0x7f.1", "0177.0.0.1", "017700000001", "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
        "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[0:0:0:0:0:0:0:1]", "127.0.0.1.", "①②⑦.⓪.⓪.①", "%31%32%37.0.0.1",
    ]

    @Test(arguments: spellings) func ourOwnListenersAreReachedByNoSpelling(_ host: String) async throws {
        try await World.with { world in
            for address in [world.server.proxy, world.server.admin, world.server.gateway] {
                let port = address.split(separator: ":").last.map(String.init) ?? ""
                for request in [
                    "GET http://\(host):\(port)/v1/status HTTP/1.1\r\nHost: \(host):\(port)\r\n\r\n",
                    "GET http://\(host):\(port)/v1/notes/1 HTTP/1.1\r\nHost: 127.0.0.1:\(world.api.port)\r\n\r\n",
                    "CONNECT \(host):\(port) HTTP/1.1\r\nHost: \(host):\(port)\r\n\r\n",
                ] {
                    let connection = try await RawConnection.open(world.server.proxy)
                    try await connection.send(request)
                    let reply = try await connection.response()
                    #expect((400..<600).contains(reply.head.status), "\(request): \(reply.head.status) \(reply.body)")
                    #expect(!reply.body.contains("\"pending\""), "the admin API answered \(request)")
                    await connection.close()
                }
            }
            #expect(world.requests.isEmpty)
        }
    }

    @Test func theAdminsHostIsNoPasswordOnOtherListeners() async throws {
        try await World.with { world in
            for listener in [world.server.proxy, world.server.gateway] {
                let reply = try await Curl.send("GET", "http://\(listener)/v1/status", fields: ["Host: \(world.server.admin)"])
                #expect(reply.json?["state"] == nil, "\(reply.text)")
            }
        }
    }

    /// A page with a host name that resolves to this machine (DNS rebinding), or one that posts from another origin (CSRF).
    @Test(arguments: [
        ("Host: evil.test", 421), ("Host: evil.test:7626", 421), ("Host: 127.0.0.1.evil.test", 421), ("Origin: https://evil.test", 403),
        ("Origin: null", 403), ("Sec-Fetch-Site: cross-site", 403),
    ])
    func theAdminAPIKnowsItsVisitors(_ field: String, _ status: Int) async throws {
        try await World.with { world in
            for (method, path) in [("POST", "/v1/storage/cleanup"), ("PUT", "/v1/network"), ("DELETE", "/v1/cache?prefix=http")] {
                let token = "Authorization: Bearer \(try world.server.token)"
                let reply = try await Curl.send(method, "http://\(world.server.admin)\(path)", fields: [field, token], body: "{}")
                #expect((400..<500).contains(reply.status), "\(method) \(path) \(field): \(reply.status)")
            }
            let read = try await Curl.send("GET", "http://\(world.server.admin)/v1/status", fields: [field])
            #expect((400..<500).contains(read.status) && read.json?["state"] == nil, "\(field): \(read.status)")
            let bare = try await Curl.send("POST", "http://\(world.server.admin)/v1/storage/cleanup", body: "{}")
            #expect(bare.status == 401)
        }
    }

    /// Metadata services and link-local addresses, in every notation (docs/security-model.md#proxy).
    @Test(arguments: [
        "169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "0xA9FEA9FE",
        "2852039166",
        "169.254.43518", "0251.0376.0251.0376", "169.254.169.254.", "[fd00:ec2::254]", "100.100.100.200", "224.0.0.1", "[ff02::1]",
        "0.0.0.1",
    ])
    func metadataAddressesAreNotReached(_ host: String) async throws {
        try await World.with(proxy: ["connect_ports": [443, 80]]) { world in
            for request in [
                "GET http://\(host)/latest/meta-data/ HTTP/1.1\r\nHost: \(host)\r\n\r\n",
                "CONNECT \(host):80 HTTP/1.1\r\nHost: \(host):80\r\n\r\n",
            ] {
                let connection = try await RawConnection.open(world.server.proxy)
                try await connection.send(request)
                let reply = try await connection.response()
                // With a trailing dot it is a name, which does not resolve.
                let isRefused = [400, 403].contains(reply.head.status) || [502, 504].contains(reply.head.status) && host.hasSuffix(".")
                #expect(isRefused, "\(request): \(reply.head.status) \(reply.body)")
                await connection.close()
            }
        }
    }
}
