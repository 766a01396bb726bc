// The admin API with slow, many or unauthorized clients, and a server with a small descriptor limit
// (docs/security-model.md#limits-and-fairness).
import Glibc
import NIOCore
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct AdminLimitTests {
    /// The number of connections that the admin API accepts on each of its listeners.
    private static let limit = 64

    private func hurried() async throws -> ServerProcess {
        var settings = ServerSettings()
        settings.proxy = DeadlineTests.timeouts
        return try await ServerProcess.start(settings)
    }

    @Test(arguments: ["", "GET /v1/st", "GET /v1/status HTTP/1.1\r\nHost: loc"]) func slowHeadsAreCutOff(_ text: String) async throws {
        let server = try await hurried()
        for isSocket in [false, true] {
            let socket = server.stateDirectory + "/admin.sock"
            let connection = try await isSocket ? RawConnection.open(socket: socket) : RawConnection.open(server.admin)
            try await connection.send(text)
            try await #expect(server.get("/healthz").status == 204)
            let answer = try await connection.readToEnd()
            #expect(text.isEmpty ? answer.isEmpty : MessageHead(answer).status == 408, "\(answer)")
            await connection.close()
        }
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    @Test(arguments: [true, false]) func slowBodiesAreCutOff(_ hasToken: Bool) async throws {
        let server = try await hurried()
        let token = hasToken ? "Authorization: Bearer \(try server.token)\r\n" : ""
        let connection = try await RawConnection.open(server.admin)
        try await connection.send(
            "POST /v1/storage/cleanup HTTP/1.1\r\nHost: \(server.admin)\r\n\(token)Content-Type: application/json\r\n"
                + "Content-Length: 20\r\n\r\n{\"dry")
        let answer = try await connection.readToEnd()
        #expect(hasToken ? answer.isEmpty || MessageHead(answer).status == 400 : MessageHead(answer).status == 401, "\(answer)")
        await connection.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    @Test func whatIsAskedInTimeIsAnsweredOnOneConnection() async throws {
        let server = try await hurried()
        let connection = try await RawConnection.open(server.admin)
        for _ in 0..<3 {
            try await connection.send("GET /v1/status HTTP/1.1\r\nHost: \(server.admin)\r\n\r\n")
            try await #expect(connection.response().head.status == 200)
        }
        try await #expect(connection.readToEnd().isEmpty)
        await connection.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// An address of this machine that is not loopback: to the server its client is one of the network. Nil on a machine without one.
    private static var ownAddress: String? {
        let addresses = (try? System.enumerateDevices())?.compactMap { $0.address?.ipAddress } ?? []
        return addresses.first { text in IPAddress(text).map { $0.octets.count == 4 && !$0.isLoopback } ?? false }
    }

    @Test(.enabled(if: Self.ownAddress != nil), arguments: [true, false])
    func onlyTheNetworksThatAreNamedReachThePort(_ isNamed: Bool) async throws {
        let own = try #require(Self.ownAddress)
        let port = FreePort.next()
        var settings = ServerSettings()
        settings.admin = ["listen": .string("0.0.0.0:\(port)")]
        settings.proxy = ["allow": [.string(isNamed ? own : "240.0.0.0/24")]]
        let server = try await ServerProcess.start(settings)
        for (host, isServed) in [(own, isNamed), ("127.0.0.1", true)] {
            let connection = try await RawConnection.open("\(host):\(port)")
            try? await connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            let answer = try await connection.readToEnd()
            #expect(isServed ? MessageHead(answer).status == 204 : answer.isEmpty, "\(host): \(answer)")
            await connection.close()
        }
        try await #expect(server.command("status").status == 0, "the owner's socket has no filter")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    @Test func aCrowdKeepsNobodyOut() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        let first = try await RawConnection.open(server.admin)
        try await first.send("GET /v1/st")
        var crowd: [RawConnection] = []
        for number in 0..<3 * Self.limit {
            let connection = try await RawConnection.open(server.admin)
            if number % 2 == 0 { try? await connection.send("GET /v1/st") }
            crowd.append(connection)
        }
        for _ in 0..<3 { try await #expect(server.get("/v1/status").status == 200) }
        try await #expect(server.change("POST", "/v1/operations/flush").status == 200)
        try await #expect(server.command("status").status == 0)
        try await #expect(first.readToEnd().isEmpty, "the oldest idle connection is closed for new ones")
        for connection in crowd { await connection.close() }
        await first.close()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// Raises the limit of this process, which holds the client ends of all connections.
    private func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    @Test(arguments: ["proxy", "gateway", "admin"]) func fewDescriptorsEndNothing(_ listener: String) async throws {
        raiseDescriptorLimit()
        let api = try await NotesServer.start(seed: [["title": "first"]])
        let server = try ServerProcess.prepare(ServerSettings(upstream: api.port, World.upstream))
        try await server.start(launcher: ["/bin/sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"])
        let address = listener == "proxy" ? server.proxy : listener == "gateway" ? server.gateway : server.admin
        var crowd: [RawConnection] = []
        for number in 0..<1000 {
            guard let connection = try? await RawConnection.open(address) else { continue }
            if number % 2 == 0 { try? await connection.send("GET /v1/no") }
            crowd.append(connection)
        }
        #expect(crowd.count > 256)
        try await eventually("a command meanwhile") { try await server.command("status").status == 0 }
        for connection in crowd { await connection.close() }
        try await eventually("answers") {
            let (note, health) = try await (Curl.send("GET", "http://\(server.gateway)/v1/notes/1"), server.get("/healthz"))
            return note.status == 200 && health.status == 204
        }
        #expect(!server.errors.contains("Too many open files"), "\(server.errors)")
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await api.stop()
    }

    @Test func twoHostsAreRefused() async throws {
        let server = try await ServerProcess.start(ServerSettings())
        for hosts in [[server.admin, "evil.test"], ["evil.test", server.admin], [server.admin, server.admin]] {
            let connection = try await RawConnection.open(server.admin)
            try await connection.send("GET /v1/status HTTP/1.1\r\n" + hosts.map { "Host: \($0)\r\n" }.joined() + "\r\n")
            let (head, body) = try await connection.response()
            #expect(head.status == 400 && head["content-type"] == "application/problem+json", "\(body)")
            await connection.close()
        }
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    /// The media types that a page of another site can send without a preflight: those of forms, and none.
    @Test(arguments: [
        "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "Content-Type: multipart/form-data; boundary=x",
        "Content-Type:",
    ])
    func aFormChangesNothing(_ type: String) async throws {
        let server = try await ServerProcess.start(ServerSettings())
        let token = "Authorization: Bearer \(try server.token)"
        let reply = try await Curl.send(
            "PUT", "http://\(server.admin)/v1/network", fields: [token, type], body: #"{"mode":"offline"}"#)
        expectProblem(reply, "unsupported-media-type", 415)
        #expect(reply["x-content-type-options"] == "nosniff")
        let shown = try await server.get("/v1/network")
        #expect(shown.json?["mode"]?.string == "auto" && shown["x-content-type-options"] == "nosniff")
        try await #expect(server.change("PUT", "/v1/network", ["mode": "offline"]).status == 200)
        try await #expect(server.change("POST", "/v1/operations/flush").status == 200)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
