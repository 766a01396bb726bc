// Clients that make the server hold much: its memory stays bounded, and other clients are served (docs/security-model.md#shares-of-clients).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(4)), .serialized)
struct MemoryAttackTests {
    private static let script = URL(filePath: #filePath).appending(path: "../../../memory/attack.py").standardized.path

    /// Runs `body` with a server whose origin answers everything but what is below `/slow`.
    private func with(_ body: (ServerProcess) async throws -> Void) async throws {
        let big = String(repeating: "b", count: 300_000)
        let origin = try await RawServer.start { connection in
            while true {
                let text = try await connection.read(through: "\r\n\r\n")
                let head = MessageHead(text)
                if let length = head["content-length"].flatMap({ Int($0) }) { _ = try await connection.read(bytes: length) }
                if text.contains(" /slow") {
                    _ = try await connection.readToEnd(within: .seconds(200))
                    return
                }
                let body = text.contains(" /big") ? big : "ok"
                try await connection.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
        }
        let server = try await ServerProcess.start(
            ServerSettings(upstream: origin.port, ["timeouts": ["first_byte": "120s"]], proxy: ["timeouts": ["body": "120s"]]))
        for _ in 0..<2 { #expect(try await Curl.send("GET", "http://\(server.gateway)/big").status == 200) }
        try await body(server)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }

    /// Requests of one process that never end: those of others find room at once.
    @Test func oneProcessKeepsNobodyOut() async throws {
        try await with { server in
            var open: [RawConnection] = []
            for number in 0..<700 {
                let connection = try await RawConnection.open(server.gateway)
                try await connection.send("POST /w\(number) HTTP/1.1\r\nHost: \(server.gateway)\r\nContent-Length: 20000\r\n\r\n{")
                open.append(connection)
            }
            for number in 0..<8 {
                let answer = try await Curl.send("GET", "http://\(server.gateway)/v\(number)", options: ["-m", "20"])
                #expect(answer.status == 200, "\(number): \(answer.status)")
            }
            for connection in open { await connection.close() }
        }
    }

    /// The growth in MB that is permitted, also to a debug build: bodies have a budget of 24 MiB, the exchanges under way one of 512.
    @Test(arguments: [("bodies", 10, 150), ("bodies", 20, 150), ("gets", 20, 200), ("readers", 20, 150)] as [(String, Int, Int64)])
    func memoryIsBoundedAndOthersAreServed(kind: String, connections: Int, growth: Int64) async throws {
        let python = try #require(Python.with("json"))
        try await with { server in
            let attack = Task {
                try await Command.run(
                    "/usr/bin/env", [python, "-B", Self.script, kind, server.gateway, "\(connections)", "100", "\(server.pid)", "20"],
                    within: .seconds(60))
            }
            try await Task.sleep(for: .seconds(10))
            #expect(try await Curl.send("GET", "http://\(server.gateway)/\(kind)", options: ["-m", "20"]).status == 200)
            #expect(try await Curl.send("POST", "http://\(server.gateway)/notes", body: "hello", options: ["-m", "20"]).status == 200)
            let report = try await JSONValue.parse(Array(attack.value.output.utf8))
            let (before, most) = (report["before"]?.integer ?? 0, report["most"]?.integer ?? .max)
            #expect(most - before < growth, "\(report)")
            #expect(report["refused"]?.integer ?? 0 > 0, "\(report)")
        }
    }
}
