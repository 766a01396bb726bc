// SIGKILL while a live write is under way: it is uncertain afterwards, and an answered one is not (docs/outbox.md#live-writes).
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct LiveWriteCrashTests {
    /// An upstream that answers POST only under `/answered`, and 201; a PUT while `isSilent` never. Everything else is 404.
    final class Origin: Sendable {
        private let seen = Mutex<[(line: String, key: String?)]>([])
        let isSilent = Mutex(true)

        var writes: [(line: String, key: String?)] { seen.withLock { $0 } }

        func keys(_ line: String) -> [String?] { writes.filter { $0.line.hasPrefix(line) }.map(\.key) }

        func serve(_ connection: RawConnection) async throws {
            while true {
                let text = try await connection.read(through: "\r\n\r\n", within: .seconds(60))
                let (line, head) = (String(text.prefix { $0 != "\r" }), MessageHead(text))
                if let length = head["content-length"].flatMap({ Int($0) }), length > 0 { _ = try await connection.read(bytes: length) }
                guard ["POST", "PUT"].contains(where: line.hasPrefix) else {
                    try await connection.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                }
                seen.withLock { $0.append((line, head["idempotency-key"].map { $0.replacing("\"", with: "") })) }
                if line.contains("/silent"), isSilent.withLock({ $0 }) {
                    try await Task.sleep(for: .seconds(60))
                    return
                }
                try await connection.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
            }
        }
    }

    private func with(_ members: JSONValue = [:], _ body: (Origin, ServerProcess) async throws -> Void) async throws {
        let origin = Origin()
        let listener = try await RawServer.start { try await origin.serve($0) }
        let server = try await ServerProcess.start(ServerSettings(upstream: listener.port, members))
        try await body(origin, server)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await listener.stop()
    }

    /// Sends a write whose answer never comes, and kills the server, or stops it, when the upstream has it.
    private func kill(
        _ server: ServerProcess, during method: String, _ path: String, fields: [String] = [], body: String = #"{"title":"tide"}"#,
        at origin: Origin, stops: Bool = false
    ) async throws {
        let count = origin.writes.count
        async let reply = Curl.send(
            method, "http://\(server.gateway)\(path)", fields: ["Content-Type: application/json", "Expect:"] + fields, body: body)
        try await eventually("the write at its upstream", pace: .milliseconds(5)) { origin.writes.count > count }
        if stops { try await #expect(server.stop() == .exit(0)) } else { try await server.kill() }
        let ended = try await reply
        #expect(ended.status == 0)
    }

    @Test func aWriteUnderWayIsUncertain() async throws {
        try await with { origin, server in
            try await kill(server, during: "POST", "/silent", fields: ["Authorization: Bearer secret-of-the-client"], at: origin)
            try await server.start()
            let listed = try await server.operations()
            let operation = try #require(listed.first)
            #expect(listed.count == 1 && operation["state"]?.string == "uncertain")
            // The first look for its effect may have ended already.
            #expect(operation["reason"] == "crashed")
            try #expect(operation["idempotencyKey"]?.string == #require(origin.keys("POST").first) && operation["method"]?.string == "POST")
            let id = try #require(operation["id"]?.string)
            let shown = try await server.command("outbox", "ls").output
            #expect(shown.contains("uncertain") && shown.contains(String(id.prefix(8))), "\(shown)")
            let stored = try ["data.sqlite", "data.sqlite-wal", "live-writes"].map {
                Data(try Files.bytes(of: "\(server.stateDirectory)/\($0)"))
            }
            #expect(stored.allSatisfy { $0.range(of: Data("secret-of-the-client".utf8)) == nil })
            // Nothing honours its key: a person decides.
            #expect(origin.keys("POST").count == 1)
            #expect(try await server.command("outbox", "discard", id).status == 0)
            #expect(try await server.operations("uncertain").isEmpty)
        }
    }

    /// A stop waits 5 s for what is under way, and then closes its connection. The second write of a kind is relayed.
    @Test(arguments: [false, true]) func aWriteThatAStopCutsOffIsUncertain(isRelayed: Bool) async throws {
        try await with { origin, server in
            origin.isSilent.withLock { $0 = false }
            let url = "http://\(server.gateway)/silent"
            for _ in 0..<(isRelayed ? 4 : 0) {
                #expect(try await Curl.send("POST", url, fields: ["Content-Type: application/json", "Expect:"], body: "{}").status == 201)
            }
            origin.isSilent.withLock { $0 = true }
            try await kill(server, during: "POST", "/silent", at: origin, stops: true)
            try await server.start()
            let listed = try await server.operations()
            #expect(listed.map { $0["state"]?.string } == ["uncertain"] && listed.first?["reason"] == "crashed")
            try #expect(listed.first?["idempotencyKey"]?.string == #require(origin.keys("POST").last))
        }
    }

    @Test func itHoldsNoOtherPost() async throws {
        try await with(["idempotency": ["max_processing": "400ms"]]) { origin, server in
            try await kill(server, during: "POST", "/silent", at: origin)
            try await server.start()
            origin.isSilent.withLock { $0 = false }
            let next = try await Curl.send(
                "POST", "http://\(server.gateway)/silent", fields: ["Content-Type: application/json"], body: #"{"title":"ebb"}"#)
            #expect(next.status == 201 && origin.keys("POST").count == 2)
            let id = try #require(try await server.operations("uncertain").first?["id"]?.string)
            #expect(try await server.command("outbox", "retry", id).status == 0)
            try await server.outboxIsEmpty()
            let keys = origin.keys("POST")
            #expect(keys.count == 3 && keys[0] == keys[2] && keys[1] != keys[0])
        }
    }

    @Test(arguments: ["PUT", "POST"]) func itIsSentAgainWhereThatIsHarmless(_ method: String) async throws {
        try await with(["idempotency": ["honoured": .string(method == "POST" ? "yes" : "unknown"), "max_processing": "400ms"]]) {
            origin, server in
            try await kill(server, during: method, "/silent", fields: ["Idempotency-Key: \"client-1\""], at: origin)
            origin.isSilent.withLock { $0 = false }
            try await server.start()
            let id = try #require(try await server.operations().first?["id"]?.string)
            _ = try await server.operation(id, reaching: "delivered")
            #expect(origin.keys(method) == ["client-1", "client-1"])
        }
    }

    @Test func aLargeBodyIsKept() async throws {
        try await with(["idempotency": ["honoured": "yes", "max_processing": "400ms"]]) { origin, server in
            let body = #"{"title":"\#(String(repeating: "tide ", count: 300_000))"}"#
            try await kill(server, during: "POST", "/silent", body: body, at: origin)
            origin.isSilent.withLock { $0 = false }
            try await server.start()
            try await server.outboxIsEmpty()
            #expect(origin.keys("POST").count == 2)
        }
    }

    /// Also where the answer came a moment ago: the row may still be there, its end is marked.
    @Test func anAnsweredWriteIsNot() async throws {
        try await with { origin, server in
            for round in 1...5 {
                for n in 1...3 {
                    let reply = try await Curl.send(
                        "POST", "http://\(server.gateway)/answered/\(n)", fields: ["Content-Type: application/json"], body: "{}")
                    #expect(reply.status == 201)
                }
                try await server.kill()
                try await server.start()
                #expect(try await server.operations().isEmpty, "round \(round)")
            }
            #expect(origin.keys("POST").count == 15)
        }
    }

    @Test func aWriteThatMayNotBeQueuedLeavesNothing() async throws {
        try await with(["routes": [["match": "/silent", "queue": "never"]]]) { origin, server in
            try await kill(server, during: "POST", "/silent", at: origin)
            try await server.start()
            #expect(try await server.operations().isEmpty)
        }
    }

    /// The write that lost its answer is in the outbox once, as without a crash.
    @Test func aQueuedWriteIsThereOnce() async throws {
        try await with(["timeouts": ["first_byte": "500ms"]]) { origin, server in
            let reply = try await Curl.send(
                "POST", "http://\(server.gateway)/silent", fields: ["Content-Type: application/json"], body: "{}")
            #expect(reply.status == 202)
            try await server.kill()
            try await server.start()
            let listed = try await server.operations()
            #expect(listed.compactMap { $0["id"]?.string } == [try #require(reply["rockpool-operation"])])
            #expect(listed.first?["reason"]?.string == "lost_answer" && origin.keys("POST").count == 1)
        }
    }
}
