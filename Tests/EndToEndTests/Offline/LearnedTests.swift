// An API that nobody has described is learned while it is used (docs/outbox.md#learning), and `rockpool learned` shows, pins and forgets it.
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct LearnedTests {
    /// The report of a server, once a collection is learned.
    private func learned(_ world: World) async throws -> JSONValue {
        try await eventualValue("a learned collection") {
            let reply = try await world.server.command("learned", "ls", "--format", "json")
            let items = (try? JSONValue.parse(Array(reply.output.utf8)))?["items"]?.array ?? []
            return items.first { $0["state"] == "learned" }
        }
    }

    @Test func whatWasReadIsKnownAwayAndForgottenOnRequest() async throws {
        try await World.with(upstream: ["resources": "learned"]) { world in
            for path in ["/v1/notes", "/v1/notes/1"] { try await #expect(world.send("GET", path).status == 200) }
            let known = try await learned(world)
            #expect(known["collection"] == "/v1/notes" && known["resource"]?["item"] == "/v1/notes/{id}", "\(known)")
            #expect(known["missing"]?.string?.contains("create") == true, "\(known)")
            try await #expect(world.server.command("learned", "ls").output.contains("/v1/notes/{id}"))

            await world.goOffline()
            _ = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"from the boat"}"#)
            let list = try await world.send("GET", "/v1/notes")
            #expect(list.status == 200 && list.text.contains("from the boat"), "\(list.text)")

            let forgotten = try await world.server.command("learned", "forget", "notes")
            #expect(forgotten.status == 0 && forgotten.output.contains("1"), "\(forgotten.output)\(forgotten.errors)")
            let after = try await world.server.get("/v1/learned").json
            #expect(after?["items"]?.array?.contains { $0["state"] == "learned" } == false, "\(String(describing: after))")
            try await #expect(world.server.command("learned", "forget", "nobody").status == 1)
        }
    }

    /// Lists below projects, whose entries have paths of their own.
    @Test func entriesOutsideOfTheirListsAreShownInThem() async throws {
        let play: PlayedSite.Play = { asked in
            switch "\(asked.method) \(asked.path)" {
            case "GET /projects": .text(#"[{"id":1,"n":"a"},{"id":2,"n":"b"}]"#, "Content-Type: application/json")
            case "GET /projects/1": .text(#"{"id":1,"n":"a"}"#, "Content-Type: application/json")
            case "GET /projects/1/tasks": .text(#"[{"id":11,"t":"x"}]"#, "Content-Type: application/json")
            case "GET /projects/2/tasks": .text(#"[{"id":12,"t":"y"}]"#, "Content-Type: application/json")
            case "GET /tasks/11": .text(#"{"id":11,"t":"x"}"#, "Content-Type: application/json")
            case "POST /projects/1/tasks": .text(#"{"id":13,"t":"n"}"#, status: 201, "Content-Type: application/json")
            default: .text("{}", status: 404, "Content-Type: application/json")
            }
        }
        try await PlayedWorld.with(upstream: ["resources": "learned"], play) { world in
            let json = ["Content-Type: application/json"]
            let reads = ["/projects", "/projects/1", "/projects/1/tasks", "/tasks/11", "/projects/2/tasks"]
            for path in reads { try await #expect(world.send("GET", path).status == 200) }
            func known(creates: Bool) async throws -> JSONValue {
                try await eventualValue("the tasks") {
                    try await world.server.get("/v1/learned").json?["items"]?.array?.first {
                        $0["collection"] == "/projects/{projects_id}/tasks" && $0["resource"]?["creates"] == .bool(creates)
                    }
                }
            }
            let tasks = try await known(creates: false)
            #expect(tasks["resource"]?["item"] == "/tasks/{id}", "\(tasks)")
            try await #expect(world.send("POST", "/projects/1/tasks", fields: json, body: #"{"t":"n"}"#).status == 201)
            _ = try await known(creates: true)
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "offline"])
            _ = try await world.send("POST", "/projects/2/tasks", fields: json, body: #"{"t":"away"}"#)
            _ = try await world.send("PATCH", "/tasks/12", fields: json, body: #"{"t":"edited"}"#)
            let (own, other) = (try await world.send("GET", "/projects/2/tasks"), try await world.send("GET", "/projects/1/tasks"))
            #expect(own.json?.array?.map { $0["t"]?.string } == ["edited", "away"], "\(own.text)")
            #expect(!other.text.contains("away") && !other.text.contains("edited"), "\(other.text)")
        }
    }

    @Test func nothingIsLearnedWhereItIsOff() async throws {
        try await World.with(upstream: ["resources": "off"]) { world in
            for path in ["/v1/notes", "/v1/notes/1"] { try await #expect(world.send("GET", path).status == 200) }
            try await Task.sleep(for: .seconds(1))
            try await #expect(world.server.get("/v1/learned").json?["items"] == [])
        }
    }

    @Test func whatIsKnownIsWrittenIntoTheConfiguration() async throws {
        let (api, scratch) = (try await NotesServer.start(seed: [["title": "a"]]), try Scratch())
        let (proxy, admin, gateway) = (FreePort.next(), FreePort.next(), FreePort.next())
        let file = try scratch.write(
            """
            proxy: { listen: "127.0.0.1:\(proxy)" }
            admin: { listen: "127.0.0.1:\(admin)" }
            storage: { cache_dir: c, state_dir: s, min_free: 1 MB }
            upstreams:
              - name: notes
                origin: http://127.0.0.1:\(api.port)
                gateway: 127.0.0.1:\(gateway)
                policy: offline-first
            """, to: "learned.yaml")
        let child = try await ChildProcess(Binary.path, ["serve", "--config", file])
        try await eventually("the ready line") { child.output.contains("rockpool ready") || !child.isRunning }
        for path in ["/v1/notes", "/v1/notes/1"] {
            try await #expect(Curl.send("GET", "http://127.0.0.1:\(gateway)\(path)").status == 200)
        }
        _ = try await eventualValue("a learned collection") {
            let listed = try await Command.rockpool(["learned", "ls", "--config", file])
            return listed.output.contains("/v1/notes/{id}") ? true : nil
        }
        let shown = try await Command.rockpool(["learned", "pin", "--dry-run", "--config", file])
        #expect(shown.status == 0 && shown.output.contains("resources:"), "\(shown.output)\(shown.errors)")
        #expect(try !String(contentsOfFile: file, encoding: .utf8).contains("resources:"))
        let pinned = try await Command.rockpool(["learned", "pin", "notes", "--config", file])
        #expect(pinned.status == 0, "\(pinned.output)\(pinned.errors)")
        #expect(try String(contentsOfFile: file, encoding: .utf8).contains("/v1/notes/{id}"))
        let entities = try await Command.rockpool(["entities", "--config", file])
        #expect(entities.output.contains("/v1/notes"), "\(entities.output)\(entities.errors)")
        child.signal(SIGTERM)
        try await #expect(child.ending() == .exit(0))
        await api.stop()
    }
}
