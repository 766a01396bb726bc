// gRPC's own client for Python inside a decrypted tunnel and at a gateway: every kind of call is as it is without a proxy.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(4))) struct GRPCProgramTests {
    private static let python = Python.with("grpc")
    private static let programs =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path + "/programs/"

    /// A server with its port, and what its clients need.
    private struct World {
        let service: ChildProcess
        let port: Int
        let server: ServerProcess
        /// Authorities of the service and of Rockpool; `-` without TLS.
        let roots: String
        /// A file of the authority for which the service's certificate was made.
        let authority: TestAuthority?

        /// Runs the client; prints a line for each kind of call.
        func client(_ kinds: String..., direct: Bool = false, port other: Int? = nil) async throws -> Command {
            try await Command.run(
                "/usr/bin/env", arguments(kinds, port: other), environment: direct ? [:] : ["https_proxy": "http://\(server.proxy)"],
                within: .seconds(100))
        }

        func arguments(_ kinds: [String], port other: Int? = nil) throws -> [String] {
            try [#require(python), programs + "grpc_client.py", "\(other ?? port)", roots] + kinds
        }

        func started() async throws {
            try await eventually("the service") { try await client("unary", direct: true).output.hasPrefix("unary (b'a!'") }
        }

        func end() async throws {
            try await #expect(server.operations().isEmpty)
            let stored = try await server.get("/v1/cache?prefix=https://localhost:\(port)/pool").json?["items"]?.array
            #expect(stored?.isEmpty == true, "a call is stored: \(stored ?? [])")
            try await #expect(server.stop() == .exit(0), "\(server.errors)")
            service.signal(SIGKILL)
            _ = try await service.ending()
        }
    }

    /// Starts the service behind a declared upstream whose tunnels are decrypted.
    private func intercepting() async throws -> World {
        let (python, authority, port) = (try #require(Self.python), try await TestAuthority(), FreePort.next())
        let pair = try await authority.certificate()
        let service = try await ChildProcess("/usr/bin/env", [python, Self.programs + "grpc_server.py", "\(port)", pair])
        let settings: JSONValue = [
            "origin": .string("https://localhost:\(port)"), "intercept": true, "tls": ["ca_file": .string(authority.file)],
        ]
        let server = try await ServerProcess.start(ServerSettings(upstream: port, settings))
        let roots = server.scratch.path + "/roots.pem"
        try Files.write(Files.bytes(of: server.stateDirectory + "/ca/ca.pem") + Files.bytes(of: authority.file), to: roots)
        let world = World(service: service, port: port, server: server, roots: roots, authority: authority)
        try await world.started()
        return world
    }

    /// Same lines with and without a proxy; then the tunnel is still decrypted, as the records of the calls show.
    @Test(.enabled(if: Self.python != nil, "grpcio is not installed"))
    func everyKindOfCallIsAsItIsWithoutAProxy() async throws {
        let world = try await intercepting()
        let direct = try await world.client(direct: true)
        #expect(direct.output.split(separator: "\n").count == 15, "\(direct.output) \(direct.errors)")
        let through = try await world.client()
        Self.compare(through.output, with: direct.output)
        let network = try await world.server.get("/v1/network").json
        #expect(network?["untrusting"]?.array?.isEmpty == true)
        let requests = try await world.server.get("/v1/requests?limit=500").json?["items"]?.array ?? []
        #expect(requests.contains { $0["url"]?.string?.hasSuffix("/pool/Unary") == true && $0["verdict"]?.string == "pass" }, "\(requests)")
        #expect(!requests.contains { $0["verdict"]?.string == "tunnel" })
        try await world.end()
    }

    /// While the server is away a call ends at once with UNAVAILABLE and the reason; a server that comes back is called again.
    @Test(.enabled(if: Self.python != nil, "grpcio is not installed"))
    func aCallToAServerThatIsAwayIsUnavailable() async throws {
        let world = try await intercepting()
        _ = try await world.server.change("PUT", "/v1/network", ["mode": "offline"])
        let away = try await world.client("unary", "streaming_in_turns")
        #expect(away.output == "unary UNAVAILABLE\nstreaming_in_turns UNAVAILABLE\n", "\(away.errors)")
        _ = try await world.server.change("PUT", "/v1/network", ["mode": "auto"])
        try await #expect(world.client("client_streaming").output == "client_streaming b'3'\n")

        // The connection of a stream is lost under it.
        let waiting = try await ChildProcess(
            "/usr/bin/env", world.arguments(["left_alone"]), environment: ["https_proxy": "http://\(world.server.proxy)"])
        try await eventually("the stream's first answer") { waiting.output.contains("first") }
        world.service.signal(SIGKILL)
        try await eventually("the end of the stream") { waiting.output.contains("left_alone UNAVAILABLE") }
        _ = try await waiting.ending()
        try await #expect(world.client("unary").output == "unary UNAVAILABLE\n")
        try await world.end()
    }

    /// An upstream that is silent is noticed by the client's own pings, as on a connection of its own.
    @Test(.enabled(if: Self.python != nil, "grpcio is not installed"))
    func anUpstreamThatDoesNotAnswerPingsIsLost() async throws {
        let world = try await intercepting()
        let waiting = try await ChildProcess(
            "/usr/bin/env", world.arguments(["left_alone"]), environment: ["https_proxy": "http://\(world.server.proxy)"])
        try await eventually("the stream's first answer") { waiting.output.contains("first") }
        world.service.signal(SIGSTOP)
        try await eventually("the end of the stream", within: .seconds(40)) { waiting.output.contains("left_alone UNAVAILABLE") }
        _ = try await waiting.ending()
        world.service.signal(SIGCONT)
        try await world.end()
    }

    /// A client that leaves ends its call at the server.
    @Test(.enabled(if: Self.python != nil, "grpcio is not installed"))
    func aClientThatLeavesEndsItsCall() async throws {
        let world = try await intercepting()
        let waiting = try await ChildProcess(
            "/usr/bin/env", world.arguments(["left_alone"]), environment: ["https_proxy": "http://\(world.server.proxy)"])
        try await eventually("the stream's first answer") { waiting.output.contains("first") }
        waiting.signal(SIGKILL)
        _ = try await waiting.ending()
        try await #expect(world.client("a_stream_was_cancelled", direct: true).output == "a_stream_was_cancelled ['stream']\n")
        try await world.end()
    }

    /// When grpcio's server hears of a cancelled stream is its own affair: of that line only what its client sees is compared.
    private static func compare(_ output: String, with direct: String) {
        let lines = { (text: String) in
            text.split(separator: "\n").map { $0.hasPrefix("cancel ") ? String($0.prefix { $0 != "[" }) : String($0) }
        }
        #expect(lines(output).count == 15)
        for (line, expected) in zip(lines(output), lines(direct)) { #expect(line == expected) }
    }

    /// A gateway that clients reach without TLS, by prior knowledge of HTTP/2, in front of a server without TLS.
    @Test(.enabled(if: Self.python != nil, "grpcio is not installed"))
    func aGatewayPassesCallsWithoutTLS() async throws {
        let (python, port) = (try #require(Self.python), FreePort.next())
        let service = try await ChildProcess("/usr/bin/env", [python, Self.programs + "grpc_server.py", "\(port)"])
        let server = try await ServerProcess.start(ServerSettings(upstream: port))
        let world = World(service: service, port: port, server: server, roots: "-", authority: nil)
        try await world.started()
        let gateway = try #require(Int(server.gateway.split(separator: ":").last ?? ""))
        let direct = try await world.client(direct: true)
        let through = try await world.client(direct: true, port: gateway)
        Self.compare(through.output, with: direct.output)
        try await world.end()
    }
}
