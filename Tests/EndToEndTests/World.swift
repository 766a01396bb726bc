// The notes API and the real server in front of it, used by most of these tests.
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

/// The two listeners through which a client reaches an upstream.
enum Door: String, CaseIterable { case proxy, gateway }

/// A notes API and a server that declares it.
struct World: Sendable {
    let api: NotesServer
    let server: ServerProcess

    /// Default members of the upstream's configuration entry: the API honours keys and can be probed.
    static let upstream: JSONValue = [
        "probe": ["path": "/healthz", "interval": "1s", "expect": 204],
        "idempotency": ["honoured": "yes", "max_processing": "1s"],
        "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}"]],
    ]

    /// Runs `body` with both, and checks that the server stops cleanly on SIGTERM.
    static func with(
        seed: [JSONValue] = [["title": "first"], ["title": "second"]], api settings: NotesSettings = NotesSettings(),
        upstream: JSONValue = [:], storage: JSONValue = [:], proxy: JSONValue = [:], cleanup: JSONValue = [:],
        notify: JSONValue = [],
        _ body: (World) async throws -> Void
    ) async throws {
        let api = try await NotesServer.start(port: FreePort.next(), seed: seed, settings: settings)
        do {
            var declared = ServerSettings(upstream: api.port, Self.upstream.merging(upstream), storage: storage, proxy: proxy)
            declared.cleanup = cleanup
            declared.notify = notify
            let server = try await ServerProcess.start(declared)
            try await body(World(api: api, server: server))
            try await #expect(server.stop() == .exit(0), "\(server.errors)")
        } catch {
            await api.stop()
            throw error
        }
        await api.stop()
    }

    /// Sends a request for a path of the API by curl.
    func send(
        _ method: String = "GET", _ path: String, via door: Door = .gateway, fields: [String] = [], body: String? = nil,
        options: [String] = []
    ) async throws -> Curl {
        switch door {
        case .proxy:
            try await Curl.send(
                method, "http://127.0.0.1:\(api.port)\(path)", proxy: server.proxy, fields: fields, body: body, options: options)
        case .gateway:
            try await Curl.send(method, "http://\(server.gateway)\(path)", fields: fields, body: body, options: options)
        }
    }

    /// Sends a write and expects a 202. Returns the operation's id.
    func queued(
        _ method: String, _ path: String, fields: [String] = [], body: String? = nil, via door: Door = .gateway
    ) async throws -> String {
        let reply = try await send(method, path, via: door, fields: fields + ["Content-Type: application/json"], body: body)
        #expect(reply.status == 202, "\(method) \(path): \(reply.status) \(reply.text)")
        return try #require(reply["rockpool-operation"])
    }

    /// Stops the API. The server notices at its next request or probe.
    func goOffline() async { await api.stop() }

    /// The requests that the API received, without the probes.
    var requests: [Seen] { api.log().filter { $0.target != "/healthz" } }

    /// Returns the number of received requests with this method and target.
    func arrivals(_ method: String, _ target: String) -> Int {
        api.log().count { $0.method.rawValue == method && $0.target == target }
    }
}

/// Expects that a reply is a problem of this type (docs/reference/admin-api.md#problems).
func expectProblem(_ reply: Curl, _ type: String, _ status: Int, _ location: SourceLocation = #_sourceLocation) {
    #expect(reply.status == status, "\(reply.text)", sourceLocation: location)
    #expect(reply["content-type"]?.hasPrefix("application/problem+json") == true, "\(reply.text)", sourceLocation: location)
    #expect(reply.json?["type"]?.string == "urn:rockpool:problem:\(type)", "\(reply.text)", sourceLocation: location)
    #expect(reply.json?["title"]?.string?.isEmpty == false && reply.json?["detail"]?.string?.isEmpty == false, sourceLocation: location)
}

/// Returns those of `names` that an object lacks.
func missing(_ names: [String], in value: JSONValue?) -> [String] {
    names.filter { value?[$0] == nil }
}
