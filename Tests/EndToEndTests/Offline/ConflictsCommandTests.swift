// A conflict on the command line of the real server: listed, shown, decided, undone (docs/reference/cli.md#conflicts).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct ConflictsCommandTests {
    /// Creates a conflict about the title in a resource with `conflict: ask`. Returns the ids of the conflict and the operation.
    private func met(_ world: World) async throws -> (conflict: String, operation: String) {
        _ = try await world.send("GET", "/v1/notes/1")
        await world.goOffline()
        let operation = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"mine"}"#)
        _ = world.api.edit(note: "1", with: ["title": "theirs"])
        try await world.api.restart()
        _ = try await world.server.operation(operation, reaching: "conflicted")
        let conflict = try await eventualValue("an open conflict") {
            try await world.server.get("/v1/conflicts").json?["items"]?.array?.first?["id"]?.string
        }
        return (conflict, operation)
    }

    private static let asking: JSONValue = [
        "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}", "conflict": "ask"]]
    ]

    @Test(arguments: [("mine", "mine", "theirs"), ("theirs", "theirs", "mine")])
    func oneSideIsKeptAndTheOtherBroughtBack(_ kept: String, _ first: String, _ then: String) async throws {
        try await World.with(upstream: Self.asking) { world in
            let (conflict, operation) = try await met(world)
            let list = try await world.server.command("conflicts")
            #expect(list.status == 0 && list.output.contains(conflict) && list.output.contains("edit-edit"), "\(list.errors)")
            let shown = try await world.server.command("conflicts", "show", conflict)
            #expect(shown.output.contains("!  /title") && shown.output.contains("conflicts resolve \(conflict)"), "\(shown.output)")
            try await #expect(world.server.command("outbox", "show", operation).output.contains("conflicts show \(conflict)"))
            try await #expect(world.server.get("/v1/status").json?["conflicts"] == 1)

            try await #expect(world.server.command("conflicts", "undo", conflict).status == 1, "an open conflict cannot be undone")
            let resolved = try await world.server.command("conflicts", "resolve", conflict, "--keep", kept)
            #expect(resolved.status == 0 && resolved.output.contains("\(kept) by a person"), "\(resolved.errors)")
            try await world.server.outboxIsEmpty()
            #expect(world.api.note(id: "1")?.members["title"]?.string == first)
            try await #expect(world.server.command("conflicts", "resolve", conflict, "--keep", kept).status == 1, "decided already")

            let undone = try await world.server.command("conflicts", "undo", conflict)
            #expect(undone.status == 0, "\(undone.errors)")
            try await world.server.outboxIsEmpty()
            #expect(world.api.note(id: "1")?.members["title"]?.string == then)
            let document = try await world.server.get("/v1/conflicts/\(conflict)").json
            #expect(document?["mine"]?["title"] == "mine" && document?["theirs"]?["title"] == "theirs")
        }
    }

    @Test func theTailShowsAConflictOnce() async throws {
        try await World.with(upstream: Self.asking) { world in
            let (conflict, operation) = try await met(world)
            let resolved = try await world.server.command("conflicts", "resolve", conflict, "--keep", "mine")
            #expect(resolved.status == 0, "\(resolved.errors)")
            try await world.server.outboxIsEmpty()
            let delivered = "/v1/requests?verdict=delivered"
            try await eventually("the delivery") {
                try await world.server.get(delivered).json?["items"]?.array?.first?["operation"]?.string == operation
            }
            try await #expect(world.server.get("/v1/requests?verdict=conflicted").json?["items"]?.array?.count == 1)
        }
    }

    @Test func aSyncSaysWhatItDidAndWhatWaits() async throws {
        try await World.with(upstream: Self.asking) { world in
            let (conflict, _) = try await met(world)
            let synced = try await world.server.command("sync")
            #expect(synced.status == 0 && synced.output.contains(/delivered +0/), "\(synced.output)\(synced.errors)")
            #expect(synced.output.contains(conflict), "\(synced.output)")
            let json = try await world.server.command("sync", "now", "--format", "json")
            let document = try JSONValue.parse(Array(json.output.utf8))
            #expect(document["conflicts"]?["items"]?.array?.count == 1 && document["pull"]?["items"] == [], "\(json.output)")
            let sync = try await world.server.get("/v1/stats").json?["sync"]
            #expect(sync?["conflicts"] == 1 && sync?["successRatio"]?.isNull == true && sync?["targets"]?["seconds"] != nil)
            let entities = try await world.server.get("/v1/entities").json?["items"]?.array
            #expect(entities?.first?["states"]?["pending-update"] == 1 && entities?.first?["strategy"] == "ask")
        }
    }

    @Test func aMergeOfOnesOwnIsSent() async throws {
        try await World.with(upstream: Self.asking) { world in
            let (conflict, _) = try await met(world)
            let file = world.server.scratch.path + "/merged.json"
            let command = "printf '%s' \"$1\" > \"$2\""
            _ = try await Command.run("/bin/sh", ["-c", command, "sh", #"{"title":"both of us","body":"b"}"#, file])
            let resolved = try await world.server.command("conflicts", "resolve", conflict, "--merged", file)
            #expect(resolved.status == 0 && resolved.output.contains("merged by a person"), "\(resolved.errors)")
            try await world.server.outboxIsEmpty()
            #expect(world.api.note(id: "1")?.members["title"] == "both of us" && world.api.note(id: "1")?.members["body"] == "b")
            try await #expect(world.server.command("conflicts", "resolve", "nobody", "--keep", "mine").status == 1)
            try await #expect(world.server.command("conflicts").output == "no conflicts\n")
        }
    }
}
