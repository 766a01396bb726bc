// An origin whose answers a test says, and the real server in front of it.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

/// An origin whose answers a test says, and that keeps what it was asked. A `HEAD /` asks only whether it is there: it is played as any
/// other request, and not counted.
final class PlayedSite: Sendable {
    typealias Play = @Sendable (Asked) -> Said

    /// One request as it came.
    struct Asked: Sendable {
        let method: String
        let path: String
        let head: MessageHead
        let body: String

        /// The value of a field.
        subscript(name: String) -> String? { head[name] }
    }

    /// One answer.
    struct Said: Sendable {
        var status = 200
        /// Whole lines, `Name: value`.
        var fields: [String] = []
        var body: [UInt8] = []
        /// Goes on the wire in place of all that.
        var wire: [UInt8]?
        /// Whether the connection ends behind it.
        var closes = false

        /// An answer with a text.
        static func text(_ text: String, status: Int = 200, _ fields: String...) -> Said {
            Said(status: status, fields: fields, body: Array(text.utf8))
        }

        /// The bytes of the body that go on the wire.
        fileprivate func content(for method: String) -> [UInt8] {
            method == "HEAD" || status == 204 || status == 304 ? [] : body
        }

        /// The whole message.
        fileprivate func message(for method: String) -> [UInt8] {
            if let wire { return wire }
            var lines = ["HTTP/1.1 \(status) X"] + fields
            if status != 204, status != 304 { lines.append("Content-Length: \(body.count)") }
            let head = lines.joined(separator: "\r\n") + "\r\n\r\n"
            return Array(head.utf8) + content(for: method)
        }
    }

    private let server: RawServer
    private let script: Script

    private init(server: RawServer, script: Script) {
        self.server = server
        self.script = script
    }

    /// Listens and answers as `play` says; connections are kept.
    static func start(_ play: @escaping Play) async throws -> PlayedSite {
        let script = Script(play)
        let server = try await RawServer.start { try await script.serve($0) }
        return PlayedSite(server: server, script: script)
    }

    var port: Int { server.port }

    /// How it answers from now on.
    func play(_ play: @escaping Play) { script.state.withLock { $0.play = play } }

    /// What it was asked, in order.
    var asked: [Asked] { script.state.withLock { $0.asked } }

    /// How often it was asked for a path, by one method or by any.
    func count(_ path: String, _ method: String? = nil) -> Int {
        asked.count { $0.path == path && (method == nil || $0.method == method) }
    }

    /// Bytes of bodies that it has sent.
    var sent: Int { script.state.withLock { $0.sent } }

    /// Connections that were made to it.
    var connections: Int { script.state.withLock { $0.connections } }

    func stop() async { await server.stop() }

    private final class Script: Sendable {
        struct State {
            var play: Play
            var asked: [Asked] = []
            var sent = 0
            var connections = 0
        }

        let state: Mutex<State>

        init(_ play: @escaping Play) { state = Mutex(State(play: play)) }

        func serve(_ connection: RawConnection) async throws {
            state.withLock { $0.connections += 1 }
            while true {
                let asked = try await request(on: connection)
                let play = state.withLock { state in
                    if asked.method != "HEAD" || asked.path != "/" { state.asked.append(asked) }
                    return state.play
                }
                let said = play(asked)
                state.withLock { $0.sent += said.content(for: asked.method).count }
                try await connection.send(said.message(for: asked.method))
                if said.closes { return }
            }
        }

        private func request(on connection: RawConnection) async throws -> Asked {
            let text = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
            let words = text.split(separator: " ", maxSplits: 2).map { String($0) }
            let head = MessageHead(text)
            let length = head["content-length"].flatMap { Int($0) } ?? 0
            let body = String(decoding: try await connection.read(bytes: length), as: UTF8.self)
            return Asked(method: words.first ?? "", path: words.count > 1 ? words[1] : "", head: head, body: body)
        }
    }
}

/// A played origin, and a server that declares it.
struct PlayedWorld: Sendable {
    let site: PlayedSite
    let server: ServerProcess

    /// Runs `body` with both, and checks that the server ends well on SIGTERM.
    /// - Parameters:
    ///   - categories: What differs from the defaults.
    ///   - others: Upstreams declared beside it.
    static func with(
        upstream: JSONValue = [:], categories: JSONValue? = nil, others: [JSONValue] = [], _ play: @escaping PlayedSite.Play,
        _ body: (PlayedWorld) async throws -> Void
    ) async throws {
        let site = try await PlayedSite.start(play)
        do {
            var settings = ServerSettings(upstream: site.port, upstream)
            settings.others = others
            let server = try ServerProcess.prepare(settings)
            if let categories {
                let document = try JSONValue.parse(try Files.bytes(of: server.configurationFile))
                try Files.write(document.merging(["categories": categories]).serialized(), to: server.configurationFile)
            }
            try await server.start()
            try await body(PlayedWorld(site: site, server: server))
            try await #expect(server.stop() == .exit(0), "\(server.errors)")
        } catch {
            await site.stop()
            throw error
        }
        await site.stop()
    }

    /// A path's URL, as the cache knows it.
    func url(_ path: String) -> String { "http://127.0.0.1:\(site.port)\(path)" }

    /// Sends a request by curl, through the gateway.
    func send(
        _ method: String, _ path: String, fields: [String] = [], body: String? = nil, options: [String] = []
    ) async throws -> Curl {
        try await Curl.send(method, "http://\(server.gateway)\(path)", fields: fields, body: body, options: options)
    }

    /// Reads by curl, through the gateway.
    func get(_ path: String, _ fields: [String] = [], options: [String] = []) async throws -> Curl {
        try await send("GET", path, fields: fields, options: options)
    }

    /// Turns the network switch: offline nothing goes to the origin, which stays.
    func turn(_ mode: String) async throws {
        let reply = try await server.change("PUT", "/v1/network", ["mode": .string(mode)])
        try #require(reply.status == 200, "\(reply.text)")
    }

    /// Waits until something is stored for a path.
    func stored(_ path: String) async throws {
        try await eventually("\(path) is stored") { try await server.get("/v1/cache/entry?url=\(url(path))").status == 200 }
    }
}
