// `rockpool outbox` with selections and short ids, and the next step of `rockpool status` (docs/reference/cli.md#outbox-ls).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct OutboxSelectionTests {
    /// Runs a server that is switched off, with four queued writes.
    private func with(_ body: (ServerProcess, [JSONValue]) async throws -> Void) async throws {
        let server = try await ServerProcess.start(ServerSettings(upstream: 9, [:]))
        _ = try await server.command("network", "offline")
        for (method, path) in [("PUT", "/v1/a"), ("PUT", "/v1/b"), ("DELETE", "/v1/c"), ("POST", "/v2/d")] {
            let sent = try await Curl.send(
                method, "http://\(server.gateway)\(path)", fields: ["Content-Type: application/json"], body: method == "DELETE" ? nil : "{}"
            )
            #expect([200, 201, 202, 204].contains(sent.status), "\(method) \(path): \(sent.status)")
        }
        let operations = try await server.operations()
        try #require(operations.count == 4)
        try await body(server, operations)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }

    private func open(_ server: ServerProcess) async throws -> [JSONValue] {
        try await server.operations().filter { $0["state"] == "pending" }
    }

    @Test func aListSelects() async throws {
        try await with { server, _ in
            let list = { (arguments: [String]) in
                let run = try await server.command(["outbox", "ls"] + arguments)
                #expect(run.status == 0, "\(run.errors)")
                return run.output.split(separator: "\n").count { $0.contains("/v1/") || $0.contains("/v2/") }
            }
            try await #expect(list([]) == 4)
            try await #expect(list(["--method", "put"]) == 2)
            try await #expect(list(["--path", "/v1/"]) == 3)
            try await #expect(list(["--limit", "2"]) == 2)
            try await #expect(list(["--older-than", "1h"]) == 0)
            try await #expect(server.command("outbox", "ls", "--upstream", "none").errors.contains("declared are notes"))
            try await #expect(server.command("outbox", "ls", "--state", "sent").status == 64)
        }
    }

    @Test func aPartOfAnIdIsEnough() async throws {
        try await with { server, operations in
            let ids = operations.compactMap { $0["id"]?.string }
            let last = try #require(ids.last)
            let shown = try await server.command("outbox", "show", String(last.suffix(12)))
            #expect(shown.status == 0 && shown.output.contains(last))
            // Ids of one moment begin alike.
            let many = try await server.command("outbox", "discard", String(last.prefix(6)))
            #expect(many.status == 1 && many.errors.contains("several ids") && many.errors.contains(last), "\(many.errors)")
            try await #expect(server.command("outbox", "show", "%25").status == 1)
            try await #expect(server.command("outbox", "discard", String(last.suffix(8))).status == 0)
            try await #expect(open(server).count == 3)
        }
    }

    @Test func manyAreChangedAtOnceAfterAnAnswer() async throws {
        try await with { server, _ in
            let asked = try await server.command("outbox", "discard", "--state", "pending")
            #expect(asked.status == 1 && asked.errors.contains("add --yes to discard 4 operations"), "\(asked.errors)")
            try await #expect(server.operations().count == 4)
            let done = try await server.command("outbox", "discard", "--state", "pending", "--yes")
            #expect(done.status == 0 && done.output.contains("discard: 4 of 4"), "\(done.output) \(done.errors)")
            try await #expect(open(server).isEmpty)
            try await #expect(server.command("outbox", "retry", "--state", "pending", "--yes").output.contains("no operations"))
            try await #expect(server.command("outbox", "retry").status == 64)
        }
    }

    @Test func statusEndsWithTheNextStep() async throws {
        try await with { server, _ in
            let status = try await server.command("status", "--check")
            #expect(status.status == 0 && status.output.contains("rockpool network auto"), "\(status.output)")
        }
    }
}
