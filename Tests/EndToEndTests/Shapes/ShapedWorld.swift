// A server with APIs of several shapes (Tests/programs/shaped_api.py), and the real server in front of it.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

/// The APIs, with a gateway to them.
struct ShapedWorld {
    let port: Int
    let server: ServerProcess

    private static let program =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
        + "/programs/shaped_api.py"

    /// Runs `body` with both, and checks that the server stops cleanly.
    static func with(_ resources: JSONValue, _ body: (ShapedWorld) async throws -> Void) async throws {
        let port = FreePort.next()
        let program = try await ChildProcess("/usr/bin/env", ["python3", program, "\(port)"])
        try await eventually("the program", within: .seconds(60)) {
            try await Curl.send("GET", "http://127.0.0.1:\(port)/log").status == 200
        }
        let upstream: JSONValue = ["resources": resources, "idempotency": ["honoured": "yes", "max_processing": "1s"]]
        let server = try await ServerProcess.start(ServerSettings(upstream: port, upstream))
        try await body(ShapedWorld(port: port, server: server))
        program.signal(SIGKILL)
        _ = try await program.ending()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    func turn(_ mode: String) async throws { _ = try await server.change("PUT", "/v1/network", ["mode": .string(mode)]) }

    /// Ends the absence, and waits for the delivery of every write.
    func comeBack() async throws {
        try await turn("auto")
        try await server.outboxIsEmpty()
        let rest = try await server.operations("dead,conflicted,uncertain,parked")
        #expect(rest.isEmpty, "\(rest)")
    }

    func get(_ path: String, _ fields: [String] = []) async throws -> Curl {
        try await Curl.send("GET", "http://\(server.gateway)\(path)", fields: fields)
    }

    @discardableResult
    func send(_ method: String, _ path: String, _ body: JSONValue? = nil, _ fields: [String] = []) async throws -> Curl {
        let type = fields.contains { $0.lowercased().hasPrefix("content-type") } || body == nil ? [] : ["Content-Type: application/json"]
        return try await Curl.send(
            method, "http://\(server.gateway)\(path)", fields: fields + type,
            body: body.map { String(decoding: $0.serialized(), as: UTF8.self) })
    }

    /// What the API itself answers.
    func direct(_ path: String) async throws -> Curl { try await Curl.send("GET", "http://127.0.0.1:\(port)\(path)") }

    /// The writes that have arrived: method and target.
    func arrived() async throws -> [String] {
        try await direct("/log").json?.array?.map { "\($0["method"]?.string ?? "") \($0["target"]?.string ?? "")" } ?? []
    }
}
