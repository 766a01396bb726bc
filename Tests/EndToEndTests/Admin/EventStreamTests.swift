// `/v1/events` as received by a client; no response, log or file of the server contains a credential (docs/reference/admin-api.md#events;
// docs/security-model.md#logs-and-exports).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct EventStreamTests {
    /// Starts curl with the stream open.
    private func listen(_ world: World, after id: String? = nil) async throws -> ChildProcess {
        let fields = id.map { ["-H", "Last-Event-ID: \($0)"] } ?? []
        return try await ChildProcess("/usr/bin/curl", ["-sNi"] + fields + ["http://\(world.server.admin)/v1/events"])
    }

    /// Returns the events received so far, each as a dictionary of its lines.
    private func events(_ child: ChildProcess) -> [[String: String]] {
        child.output.replacing("\r", with: "").split(separator: "\n\n").dropFirst().map { block in
            let lines = block.split(separator: "\n").compactMap { line -> (String, String)? in
                let parts = line.split(separator: ":", maxSplits: 1)
                return parts.count == 2 ? (String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces)) : nil
            }
            return Dictionary(lines) { _, last in last }
        }
    }

    @Test func eventsAreHeardAsTheyHappenAndAgainAfterABreak() async throws {
        try await World.with { world in
            let first = try await listen(world)
            try await eventually("the counters") { events(first).contains { $0["event"] == "stats" } }
            #expect(first.output.lowercased().contains("content-type: text/event-stream"))
            await world.goOffline()
            let id = try await world.queued("POST", "/v1/notes", body: "{}")
            try await eventually("the write") { events(first).contains { $0["event"] == "operation" && $0["data"]?.contains(id) == true } }
            try await eventually("the outage") { events(first).contains { $0["event"] == "reachability" } }
            for event in events(first) where event["event"] != nil {
                let data = try JSONValue.parse(Array((event["data"] ?? "").utf8))
                #expect(data.object != nil && event["id"]?.isEmpty == false, "\(event)")
            }
            first.signal(SIGKILL)
            let last = try #require(events(first).last { $0["event"] == "operation" }?["id"])
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            let second = try await listen(world, after: last)
            try await eventually("what was missed") { events(second).contains { $0["data"]?.contains("delivered") == true } }
            #expect(!events(second).contains { $0["event"] == "gap" })
            second.signal(SIGKILL)
            let stranger = try await listen(world, after: "another-1")
            try await eventually("the gap") { events(stranger).contains { $0["event"] == "gap" } }
        }
    }

    @Test func openStreamsDoNotKeepTheServerFromStopping() async throws {
        try await World.with { world in
            var streams: [ChildProcess] = []
            for _ in 0..<3 { streams.append(try await listen(world)) }
            try await eventually("three streams") {
                try await world.server.get("/metrics").text.contains("rockpool_event_streams 3")
            }
            let began = ContinuousClock.now
            try await #expect(world.server.stop() == .exit(0))
            #expect(ContinuousClock.now - began < .seconds(8))
            try await eventually("the ends") { streams.allSatisfy { !$0.isRunning } }
        }
    }

    @Test func theAccessLogHasALineForEachExchangeAndNoSecret() async throws {
        let api = try await NotesServer.start(seed: [["title": "first"]])
        var settings = ServerSettings(upstream: api.port)
        settings.log = ["access": "json"]
        let server = try await ServerProcess.start(settings)
        for _ in 0..<3 {
            let reply = try await Curl.send(
                "GET", "http://\(server.gateway)/v1/notes/1?token=planted-77", fields: ["Authorization: Bearer planted-78"])
            #expect(reply.status == 200)
        }
        try await eventually("three lines") { server.output.split(separator: "\n").count == 4 }
        for line in server.output.split(separator: "\n").dropFirst() {
            let json = try JSONValue.parse(Array(line.utf8))
            #expect(json["status"]?.integer == 200 && json["url"]?.string?.hasSuffix("/v1/notes/1?token=REDACTED") == true, "\(line)")
        }
        #expect(!(server.output + server.errors).contains("planted"))
        try await #expect(server.stop() == .exit(0))
        await api.stop()
    }

    @Test func noCredentialIsSaidLoggedOrWritten() async throws {
        try await World.with { world in
            let secrets = ["Bearer planted-1f6b", "planted-session=9d0c5b1e77aa42f0", "Basic cGxhbnRlZDpzZWNyZXQ="]
            let fields = [["Authorization: \(secrets[0])"], ["Cookie: \(secrets[1])"], ["Authorization: \(secrets[2])"]]
            for field in fields { _ = try await world.send("GET", "/v1/notes/1", fields: field) }
            await world.goOffline()
            for field in fields { _ = try await world.queued("PATCH", "/v1/notes/1", fields: field, body: "{}") }
            var said = [world.server.errors]
            for path in [
                "/v1/status", "/v1/stats", "/v1/cache", "/v1/operations?state=all", "/v1/operations/export", "/v1/cache/export", "/metrics",
                "/v1/sync/log", "/v1/entities", "/v1/stats/history",
                "/v1/cache/entry?url=http%3A%2F%2F127.0.0.1%3A\(world.api.port)%2Fv1%2Fnotes%2F1",
            ] { said.append(try await world.server.get(path).text) }
            for operation in try await world.server.operations() {
                said.append(try await world.server.get("/v1/operations/\(operation["id"]?.string ?? "")").text)
            }
            for secret in secrets.map({ $0.split { " =".contains($0) }.last ?? "" }) {
                #expect(said.filter { $0.contains(secret) } == [], "said")
                let found = try await Command.run("/bin/grep", ["-rla", String(secret), world.server.scratch.path])
                #expect(found.output.isEmpty, "found in \(found.output)")
            }
        }
    }
}
