// A server program from PyPI, and the real server in front of it.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

/// A server program that runs in a directory of its own, with a gateway to it.
struct ProgramWorld {
    let scratch: Scratch
    let port: Int
    let server: ServerProcess

    /// The reads of WebDAV, declared to be kept by their bodies.
    static let webDAV: JSONValue = [
        "routes": [
            ["match": "PROPFIND /**", "cache": "body"], ["match": "REPORT /**", "cache": "body"],
            ["match": "OPTIONS /**", "cache": "body"],
        ]
    ]

    /// Runs `body` with both, and checks that the server stops cleanly.
    /// - Parameter command: Returns the command line of the program for its port and directory.
    static func with(
        _ command: (_ port: Int, _ directory: String) throws -> [String], upstream: JSONValue, _ body: (ProgramWorld) async throws -> Void
    ) async throws {
        let (scratch, port) = (try Scratch(), FreePort.next())
        let program = try await ChildProcess("/usr/bin/env", try command(port, scratch.path))
        try await eventually("the program", within: .seconds(60)) {
            try await Curl.send("OPTIONS", "http://127.0.0.1:\(port)/").status > 0
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: port, upstream))
        try await body(ProgramWorld(scratch: scratch, port: port, server: server))
        program.signal(SIGKILL)
        _ = try await program.ending()
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    func turn(_ mode: String) async throws { _ = try await server.change("PUT", "/v1/network", ["mode": .string(mode)]) }

    /// Runs a program that is in the path, in the directory.
    func run(_ arguments: [String], input: String = "") async throws -> Command {
        try await Command.run("/usr/bin/env", arguments, directory: scratch.path, input: input, within: .seconds(60))
    }

    func write(_ text: String, to name: String) throws {
        let path = scratch.path + "/" + name
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try Files.write(Array(text.utf8), to: path)
    }

    /// The text of a file below the directory; nil if there is none.
    func text(_ name: String) -> String? { try? Files.text(of: scratch.path + "/" + name) }
}
