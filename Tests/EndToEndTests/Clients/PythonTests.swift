// Python's urllib as the client, unchanged, through `http_proxy`: online, offline, restarted while offline, back online.
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct PythonTests {
    /// Sends the request in its arguments and prints status, `Cache-Status` and body, one line each.
    static let script = """
        import sys, urllib.request, urllib.error
        method, url = sys.argv[1:3]
        body = sys.argv[3].encode() if len(sys.argv) > 3 else None
        request = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": "application/json"})
        try:
            reply = urllib.request.urlopen(request, timeout=20)
        except urllib.error.HTTPError as error:
            reply = error
        print(reply.status)
        print(reply.headers.get("Cache-Status"))
        print(reply.read().decode())
        """

    struct Reply {
        let status: String
        let cacheStatus: String
        let body: String
    }

    private func ask(_ world: World, _ method: String, _ path: String, _ body: String? = nil) async throws -> Reply {
        let url = "http://127.0.0.1:\(world.api.port)\(path)"
        let run = try await Command.run(
            "/usr/bin/env", ["python3", "-c", Self.script, method, url] + (body.map { [$0] } ?? []),
            environment: ["http_proxy": "http://\(world.server.proxy)"])
        try #require(run.status == 0, "\(run.errors)")
        let lines = run.output.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        try #require(lines.count == 3, "\(run.output)")
        return Reply(status: lines[0], cacheStatus: lines[1], body: lines[2])
    }

    @Test func theWholeDayOfAClient() async throws {
        try await World.with { world in
            let online = try await ask(world, "GET", "/v1/notes/1")
            #expect(online.status == "200" && online.body.contains("first"))
            await world.goOffline()
            let offline = try await ask(world, "GET", "/v1/notes/1")
            #expect(offline.status == "200" && offline.body == online.body && offline.cacheStatus.contains("detail=offline"))
            try await #expect(ask(world, "GET", "/v1/notes/2").status == "504")
            try await #expect(ask(world, "POST", "/v1/notes", #"{"title":"from python"}"#).status == "202")
            try await #expect(world.server.stop() == .exit(0))
            try await world.server.start()
            let restarted = try await ask(world, "GET", "/v1/notes/1")
            #expect(restarted.status == "200" && restarted.body == online.body)
            try await #expect(ask(world, "PATCH", "/v1/notes/1", #"{"title":"patched"}"#).status == "202")
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            #expect(world.api.notes.filter { $0.members["title"] == "from python" }.count == 1)
            let back = try await ask(world, "GET", "/v1/notes/1")
            #expect(back.status == "200" && back.body.contains("patched"))
        }
    }
}
