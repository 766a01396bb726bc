// A scripted origin, and the real server in front of it.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

/// A scripted origin that records its requests. A `HEAD /` is a reachability probe: it is answered like any other request, but not counted.
final class PlayedSite: Sendable {
    typealias Play = @Sendable (Asked) -> Said

    /// One request as received.
    struct Asked: Sendable {
        let method: String
        let path: String
        let head: MessageHead
        let body: String

        /// Returns the value of a field.
        subscript(name: String) -> String? { head[name] }
    }

    /// One response.
    struct Said: Sendable {
        var status = 200
        /// Whole lines, `Name: value`.
        var fields: [String] = []
        var body: [UInt8] = []
        /// Bytes that are sent in place of all other members.
        var wire: [UInt8]?
        /// True if the connection is closed after the response.
        var closes = false

        /// Returns a response with a text body.
        static func text(_ text: String, status: Int = 200, _ fields: String...) -> Said {
            Said(status: status, fields: fields, body: Array(text.utf8))
        }

        /// Returns the bytes of the body that are sent.
        fileprivate func content(for method: String) -> [UInt8] {
            method == "HEAD" || status == 204 || status == 304 ? [] : body
        }

        /// Returns the whole message.
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

    /// Listens and answers with `play`; connections are kept open.
    static func start(_ play: @escaping Play) async throws -> PlayedSite {
        let script = Script(play)
        let server = try await RawServer.start { try await script.serve($0) }
        return PlayedSite(server: server, script: script)
    }

    var port: Int { server.port }

    /// Replaces the script from now on.
    func play(_ play: @escaping Play) { script.state.withLock { $0.play = play } }

    /// The requests received, in order.
    var asked: [Asked] { script.state.withLock { $0.asked } }

    /// Returns the number of requests for a path, by one method or by any.
    func count(_ path: String, _ method: String? = nil) -> Int {
        asked.count { $0.path == path && (method == nil || $0.method == method) }
    }

    /// Number of body bytes sent.
    var sent: Int { script.state.withLock { $0.sent } }

    /// Number of accepted connections.
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

/// A scripted origin, and a server that declares it.
struct PlayedWorld: Sendable {
    let site: PlayedSite
    let server: ServerProcess

    /// Runs `body` with both, and checks that the server stops cleanly on SIGTERM.
    /// - Parameters:
    ///   - categories: differences from the default categories.
    ///   - others: further declared upstreams.
    ///   - further: further keys of the configuration.
    static func with(
        upstream: JSONValue = [:], storage: JSONValue = [:], categories: JSONValue? = nil, others: [JSONValue] = [],
        further: JSONValue = [:],
        _ play: @escaping PlayedSite.Play,
        _ body: (PlayedWorld) async throws -> Void
    ) async throws {
        let site = try await PlayedSite.start(play)
        do {
            var settings = ServerSettings(upstream: site.port, upstream, storage: storage)
            settings.others = others
            let server = try ServerProcess.prepare(settings)
            var document = try JSONValue.parse(try Files.bytes(of: server.configurationFile)).merging(further)
            if let categories { document = document.merging(["categories": categories]) }
            try Files.write(document.serialized(), to: server.configurationFile)
            try await server.start()
            try await body(PlayedWorld(site: site, server: server))
            try await #expect(server.stop() == .exit(0), "\(server.errors)")
        } catch {
            await site.stop()
            throw error
        }
        await site.stop()
    }

    /// Returns the URL of a path in the form of the cache's keys.
    func url(_ path: String) -> String { "http://127.0.0.1:\(site.port)\(path)" }

    /// Sends a request by curl through the gateway.
    func send(
        _ method: String, _ path: String, fields: [String] = [], body: String? = nil, options: [String] = []
    ) async throws -> Curl {
        try await Curl.send(method, "http://\(server.gateway)\(path)", fields: fields, body: body, options: options)
    }

    /// Sends a GET request by curl through the gateway.
    func get(_ path: String, _ fields: [String] = [], options: [String] = []) async throws -> Curl {
        try await send("GET", path, fields: fields, options: options)
    }

    /// Sets the network switch: with `offline` no request is sent to the origin, which keeps running.
    func turn(_ mode: String) async throws {
        let reply = try await server.change("PUT", "/v1/network", ["mode": .string(mode)])
        try #require(reply.status == 200, "\(reply.text)")
    }

    /// Waits until a response for a path is stored.
    func stored(_ path: String) async throws {
        let url = url(path).addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        try await eventually("\(path) is stored") { try await server.get("/v1/cache/entry?url=\(url)").status == 200 }
    }
}
