// A user steers the outbox of the real server: edit, discard, retry a lane, export (docs/reference/admin-api.md#steering;
// docs/outbox.md#steering, docs/outbox.md#tools).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct SteeringTests {
    @Test func whatWasRefusedIsEditedAndGoesFirst() async throws {
        try await World.with(upstream: ["routes": [["match": "/v1/notes/*", "on_refused": "hold"]]]) { world in
            await world.goOffline()
            let bad = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":7}"#)
            let behind = try await world.queued("PATCH", "/v1/notes/1", body: #"{"count":1}"#)
            try await world.api.restart()
            let dead = try await world.server.operation(bad, reaching: "dead")
            let waiting = try await world.server.get("/v1/operations/\(behind)").json
            #expect(waiting?["blockedBy"]?["id"]?.string == bad && waiting?["waiting"]?.string?.contains("waits for a person") == true)
            let shown = try await world.server.get("/v1/operations/\(bad)").json
            #expect(shown?["attemptLog"]?.array?.first?["status"] == 422 && shown?["body"] == ["title": 7])

            let edit = try await world.server.command("outbox", "edit", bad, "--body", #"{"title":"seven"}"#)
            #expect(edit.status == 0 && edit.output.contains("\(bad) is replaced by "), "\(edit.errors)")
            _ = try await world.server.operation(behind, reaching: "delivered")
            let old = try await world.server.get("/v1/operations/\(bad)").json
            #expect(old?["state"] == "superseded" && old?["reason"] == "edited")
            let new = try await world.server.operation(try #require(old?["supersededBy"]?.string), reaching: "delivered")
            #expect(new["idempotencyKey"] != dead["idempotencyKey"])
            let effects = world.api.log().filter { $0.method == .patch && $0.hasEffect }
            #expect(effects.count == 2 && effects.first?.key == new["idempotencyKey"]?.string)
            #expect(world.api.note(id: "1")?.members["title"] == "seven" && world.api.note(id: "1")?.members["count"] == 1)
            try await #expect(world.server.command("outbox", "edit", bad, "--method", "PUT").status == 1)
        }
    }

    @Test func aLaneIsRetriedAndTheRestExported() async throws {
        try await World.with { world in
            await world.goOffline()
            let id = try await world.queued(
                "PATCH", "/v1/notes/1", fields: ["Authorization: Bearer topsecret"], body: #"{"title":"it's $(nasty)"}"#)
            let file = world.server.scratch.path + "/out"
            let export = try await world.server.command("outbox", "export", "--output", file)
            #expect(export.status == 0, "\(export.errors)")
            let text = try Files.text(of: file)
            #expect(text.contains(id) && !text.contains("topsecret"))
            try await #expect(world.server.command("outbox", "export", "--output", file).status == 1)
            try await #expect(world.server.command("outbox", "export", "--format", "har", "--output", file, "--force").status == 0)
            #expect(try JSONValue.parse(Array(Files.text(of: file).utf8))["log"]?["entries"]?.array?.count == 1)

            // The exported curl command sends by hand the request that the outbox would have sent.
            let curl = try await world.server.command("outbox", "export", "--format", "curl")
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "offline", "upstream": .null])
            try await world.api.restart()
            let run = try await Command.run("/bin/sh", ["-c", curl.output])
            #expect(run.status == 0, "\(run.errors)")
            #expect(world.api.note(id: "1")?.members["title"] == "it's $(nasty)")

            let lane = try #require(try await world.server.get("/v1/operations/\(id)").json?["lane"]?.string)
            let retry = try await world.server.command("outbox", "retry", "--lane", lane)
            #expect(retry.status == 0 && retry.output == "\(id) will be retried\n", "\(retry.errors)")
            let cancel = try await world.server.command("outbox", "cancel", id)
            #expect(cancel.status == 0 && cancel.errors.isEmpty, "\(cancel.errors)")
        }
    }
}
