// Socket activation: the listener with the socket's name takes it, and no other listener opens in its place (sd_listen_fds(3)).
import Foundation
import NotesAPI
import RockpoolTesting
import Testing

@Suite(.serialized) struct InheritedSocketTests {
    /// Binds a socket to each address, prints the ports on stderr, and executes the server with the sockets under the given names.
    private static let manager = """
        import fcntl, os, socket, sys
        names, addresses, command = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
        held = [socket.create_server((address, 0)) for address in addresses]
        print(*[each.getsockname()[1] for each in held], file=sys.stderr, flush=True)
        spare = [fcntl.fcntl(each.fileno(), fcntl.F_DUPFD_CLOEXEC, 50) for each in held]
        for number, each in enumerate(spare):
            os.dup2(each, 3 + number)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(held)), LISTEN_FDNAMES=names)
        os.execv(command[0], command)
        """

    private static func launcher(_ names: String, _ addresses: String) -> [String] {
        ["/usr/bin/python3", "-c", manager, names, addresses]
    }

    private func ports(_ server: ServerProcess) -> [String] {
        server.errors.split(separator: "\n").first?.split(separator: " ").map { "127.0.0.1:\($0)" } ?? []
    }

    @Test(arguments: ["proxy", "rockpool.socket"])
    func theProxyTakesTheSocketThatIsThere(_ name: String) async throws {
        let api = try await NotesServer.start()
        let server = try ServerProcess.prepare(ServerSettings(upstream: api.port))
        try await server.start(launcher: Self.launcher(name, "127.0.0.1"))
        #expect(ports(server) == [server.proxy])
        let reply = try await Curl.send("GET", "http://127.0.0.1:\(api.port)/v1/notes", proxy: server.proxy)
        #expect(reply.status == 200)
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    @Test func aGatewayTakesTheSocketOfItsUpstreamsName() async throws {
        let api = try await NotesServer.start()
        let server = try ServerProcess.prepare(ServerSettings(upstream: api.port))
        try await server.start(launcher: Self.launcher("notes:proxy", "127.0.0.1,127.0.0.1"))
        let held = ports(server)
        #expect(held.last == server.proxy && held.count == 2)
        try await #expect(Curl.send("GET", "http://\(held[0])/v1/notes").status == 200)
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    @Test(arguments: [
        ("proxy:mystery", "127.0.0.1,127.0.0.1", "the socket named mystery"), ("mystery", "127.0.0.1", "the socket named mystery"),
        ("proxy:proxy", "127.0.0.1,127.0.0.1", "two are called so"), ("proxy", "0.0.0.0", "proxy.allow"),
    ])
    func aSocketNobodyWaitsForOrThatIsTooWideIsRefused(names: String, addresses: String, word: String) async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        let failure = try await #require(throws: ServerProcess.DidNotStart.self) {
            try await server.start(launcher: Self.launcher(names, addresses))
        }
        #expect(failure.command.status == 1 && failure.command.errors.contains(word), "\(failure.command.errors)")
    }

    @Test func socketsOfAnotherProcessAreLeftAlone() async throws {
        let server = try ServerProcess.prepare(ServerSettings())
        try await server.start(environment: ["LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "proxy"])
        try await #expect(server.stop() == .exit(0))
    }
}
