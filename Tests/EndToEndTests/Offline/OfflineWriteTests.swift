// docs/outbox.md: create, read, update and delete offline, then reconnect. Writes are queued, shown in reads, and delivered in order and
// once (outbox.md; docs/reference/behaviour.md#writes).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct OfflineWriteTests {
    @Test(arguments: Door.allCases) func aQueuedWriteHasAStatusDocument(_ door: Door) async throws {
        try await World.with { world in
            await world.goOffline()
            let reply = try await world.send(
                "POST", "/v1/notes", via: door, fields: ["Content-Type: application/json"], body: #"{"title":"new"}"#)
            let id = try #require(reply["rockpool-operation"])
            #expect(reply.status == 202 && reply["rockpool-state"] == "pending")
            let location = try #require(reply["location"])
            #expect(location == "/.well-known/rockpool/operations/\(id)")
            for other in Door.allCases {
                let document = try await world.send("GET", location, via: other)
                #expect(document.status == 200 && document["retry-after"] != nil)
                #expect(document.json?["id"]?.string == id && document.json?["state"]?.string == "pending")
                #expect(document.json?["method"]?.string == "POST" && document.json?["upstream"]?.string == "notes")
                #expect(document.json?["url"]?.string == "http://127.0.0.1:\(world.api.port)/v1/notes")
                #expect(document.json?["idempotencyKey"]?.string?.isEmpty == false)
            }
            async let settled = world.send("GET", location + "?wait=30", via: door)
            try await world.api.restart()
            let document = try await settled
            #expect(document.json?["state"]?.string == "delivered" && document["retry-after"] == nil, "\(document.text)")
            #expect(document.json?["result"]?["status"]?.integer == 201)
            #expect(document.json?["result"]?["body"]?["title"]?.string == "new")
        }
    }

    @Test func offlineCRUDThenReconnect() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/notes/1")
            await world.goOffline()
            var ids = [try await world.queued("POST", "/v1/notes", body: #"{"title":"created"}"#)]
            for n in 1...4 { ids.append(try await world.queued("PATCH", "/v1/notes/1", body: #"{"count":\#(n)}"#)) }
            ids.append(try await world.queued("PUT", "/v1/notes/1", body: #"{"title":"put","count":5}"#, via: .proxy))
            ids.append(try await world.queued("DELETE", "/v1/notes/2"))
            let waiting = try await world.server.operations("pending")
            #expect(waiting.compactMap { $0["id"]?.string } == ids)
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            let operations = try await world.server.operations()
            #expect(operations.map { $0["state"]?.string } == Array(repeating: "delivered", count: ids.count))
            for operation in operations {
                let key = try #require(operation["idempotencyKey"]?.string)
                #expect(world.api.effects(forKey: key) == 1)
            }
            let bodies = world.api.log().filter { $0.hasEffect && $0.target == "/v1/notes/1" }.map {
                String(decoding: $0.body, as: UTF8.self)
            }
            #expect(bodies == (1...4).map { #"{"count":\#($0)}"# } + [#"{"title":"put","count":5}"#])
            #expect(world.api.notes.map(\.id) == ["1", "3"] && world.api.note(id: "1")?.members["title"] == "put")
            try await #expect(world.send("GET", "/v1/notes/1").text.contains("put"))
        }
    }

    /// docs/outbox.md: a sync latency below 5 s, here from the API's return to the effect.
    @Test func reconnectDeliversByItselfWithinFiveSeconds() async throws {
        try await World.with { world in
            await world.goOffline()
            let ids = [
                try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"a"}"#),
                try await world.queued("PATCH", "/v1/notes/2", body: #"{"title":"b"}"#),
            ]
            try await world.api.restart()
            let returned = NotesServer.systemClock()
            for id in ids { _ = try await world.server.operation(id, reaching: "delivered") }
            for seen in world.api.log().filter(\.hasEffect) { #expect(seen.at - returned <= .seconds(5)) }
        }
    }

    @Test func aClientsKeyIsItsWord() async throws {
        try await World.with { world in
            await world.goOffline()
            let key = ["Idempotency-Key: \"client-1\""]
            let first = try await world.queued("POST", "/v1/notes", fields: key, body: #"{"title":"x"}"#)
            try await #expect(world.queued("POST", "/v1/notes", fields: key, body: #"{"title":"x"}"#) == first)
            let fields = key + ["Content-Type: application/json"]
            expectProblem(try await world.send("POST", "/v1/notes", fields: fields, body: #"{"title":"y"}"#), "key-reused", 422)
            try await #expect(world.server.operations().count == 1)
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            #expect(
                world.api.effects(forKey: "client-1") == 1
                    && world.api.log().last { $0.hasEffect }?.fields[.idempotencyKey] == "\"client-1\"")
            try await #expect(world.send("POST", "/v1/notes", fields: fields, body: #"{"title":"x"}"#).status < 300)
            #expect(world.api.effects(forKey: "client-1") == 1)
        }
    }

    @Test func aRouteCanRefuseTheQueue() async throws {
        try await World.with(upstream: ["routes": [["match": "POST /v1/login", "queue": "never"]]]) { world in
            await world.goOffline()
            let login = try await world.send("POST", "/v1/login", fields: ["Content-Type: application/json"], body: #"{"user":"anna"}"#)
            expectProblem(login, "not-queueable", 503)
            #expect(login["retry-after"] != nil)
            let asked = try await world.send("POST", "/v1/notes", fields: ["Rockpool-Policy: no-queue"], body: "{}")
            expectProblem(asked, "not-queueable", 503)
            try await #expect(world.server.operations().isEmpty)
            try await world.api.restart()
            try await eventually("a login") {
                try await world.send("POST", "/v1/login", fields: ["Content-Type: application/json"], body: #"{"user":"anna"}"#).status
                    == 200
            }
        }
    }
}
