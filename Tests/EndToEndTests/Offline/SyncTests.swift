// Delta pull and batch push between the real binary and the API's own endpoints (docs/outbox.md#delta-pull, docs/guide/sync.md, K2).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct SyncTests {
    private static func upstream(
        _ sync: JSONValue? = nil, every: String = "1h", fullEvery: String = "24h", conflict: String = "field-merge"
    ) -> JSONValue {
        let delta: JSONValue = [
            "query": "updatedAfter={cursor}", "cursor": "/updatedAt", "deleted": "/deletedAt", "every": .string(every),
            "full_every": .string(fullEvery),
        ]
        var resource: JSONValue = ["collection": "/v1/notes", "item": "/v1/notes/{id}", "delta": delta, "conflict": .string(conflict)]
        resource["sync"] = sync
        return ["resources": .array([resource])]
    }

    private func titles(_ world: World) async throws -> [String] {
        try await world.send("GET", "/v1/notes").json?.array?.compactMap { $0["title"]?.string } ?? []
    }

    private func pull(_ world: World) async throws -> JSONValue {
        let command = try await world.server.command("sync", "pull", "--format", "json")
        #expect(command.status == 0, "\(command.errors)")
        return try #require(try JSONValue.parse(Array(command.output.utf8))["items"]?.array?.first)
    }

    @Test(arguments: [nil, ["pull": "/v1/sync/pull?since={cursor}"]] as [JSONValue?])
    func whatChangedUpstreamShowsOffline(_ sync: JSONValue?) async throws {
        try await World.with(seed: [["title": "first"], ["title": "second"], ["title": "third"]], upstream: Self.upstream(sync)) { world in
            for path in ["/v1/notes", "/v1/notes/1", "/v1/notes/2"] { _ = try await world.send("GET", path) }
            _ = try await pull(world)
            world.api.edit(note: "1", with: ["title": "edited"])
            let direct = "http://127.0.0.1:\(world.api.port)/v1/notes"
            _ = try await Curl.send("DELETE", direct + "/2")
            _ = try await Curl.send("POST", direct, fields: ["Content-Type: application/json"], body: #"{"title":"fourth"}"#)
            let report = try await pull(world)
            #expect(report["changed"] == 2 && report["gone"] == 1 && report["full"] == false, "\(report)")
            await world.goOffline()
            try await #expect(titles(world) == ["edited", "third", "fourth"])
            let note = try await world.send("GET", "/v1/notes/1")
            #expect(note.json?["title"] == "edited" && note["etag"] == "\"1-2\"", "\(note.text)")
            try await #expect(world.send("GET", "/v1/notes/2").status == 404)
            let entities = try await world.server.get("/v1/entities").json?["items"]?.array?.first
            #expect(
                entities?["cached"] == 3 && entities?["serverCount"] == 3 && entities?["lastSync"]?.string != nil, "\(entities ?? .null)")
            let table = try await world.server.command("entities")
            #expect(table.status == 0 && table.output.contains("/v1/notes"), "\(table.errors)")
        }
    }

    @Test(arguments: [nil, ["pull": "/v1/sync/pull?since={cursor}"]] as [JSONValue?])
    func whatWasPulledIsReadableOffline(_ sync: JSONValue?) async throws {
        try await World.with(seed: [["title": "first"], ["title": "second"]], upstream: Self.upstream(sync)) { world in
            _ = try await pull(world)
            world.api.edit(note: "1", with: ["title": "edited"])
            _ = try await Curl.send("DELETE", "http://127.0.0.1:\(world.api.port)/v1/notes/2")
            _ = try await pull(world)
            await world.goOffline()
            let note = try await world.send("GET", "/v1/notes/1")
            #expect(note.status == 200 && note.json?["title"] == "edited" && note["rockpool-listed"] == "1", "\(note.text)")
            try await #expect(world.send("GET", "/v1/notes/2").status == 404)
            try await #expect(world.send("GET", "/v1/notes/7").status == 504)
        }
    }

    /// An edit against a deletion: the later one wins, by the time that the page of changes states.
    @Test(arguments: [nil, ["pull": "/v1/sync/pull?since={cursor}"]] as [JSONValue?], [true, false])
    func theTimeOfADeletionReachesLastWriteWins(_ sync: JSONValue?, _ editIsLater: Bool) async throws {
        try await World.with(upstream: Self.upstream(sync, conflict: "last-write-wins")) { world in
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            _ = try await pull(world)
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "offline"])
            let delete = { _ = try await Curl.send("DELETE", "http://127.0.0.1:\(world.api.port)/v1/notes/1") }
            if editIsLater { try await delete() }
            try await Task.sleep(for: .milliseconds(50))
            let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"mine"}"#)
            try await Task.sleep(for: .milliseconds(50))
            if !editIsLater { try await delete() }
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "auto"])
            _ = try await world.server.operation(id, reaching: editIsLater ? "delivered" : "superseded")
            #expect(world.api.notes.contains { $0.members["title"] == "mine" } == editIsLater)
            let conflict = try await world.server.get("/v1/conflicts?state=all").json?["items"]?.array?.first
            #expect(conflict?["kind"] == "edit-delete" && conflict?["decidedBy"] != "person", "\(conflict ?? .null)")
            guard editIsLater else { return }
            // It exists again, and is deleted once more: the time of the earlier deletion decides nothing.
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "offline"])
            let again = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"again"}"#)
            try await Task.sleep(for: .milliseconds(50))
            try await delete()
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "auto"])
            _ = try await world.server.operation(again, reaching: "superseded")
        }
    }

    @Test func whatVanishedWithoutATombstoneIsFoundByListingAll() async throws {
        try await World.with(upstream: Self.upstream(fullEvery: "1s")) { world in
            for path in ["/v1/notes", "/v1/notes/2"] { _ = try await world.send("GET", path) }
            _ = try await pull(world)
            // Another API at the same address stands for one that has lost a note together with its tombstones.
            let port = world.api.port
            await world.api.stop()
            let other = try await NotesServer.start(port: port, seed: [["title": "first"]])
            try await eventually("a whole listing, ours or one by itself") {
                _ = try await world.server.command("sync", "pull")
                return try await world.server.get("/v1/entities").json?["items"]?.array?.first?["serverCount"] == 1
            }
            await other.stop()
            try await #expect(titles(world) == ["first"])
            try await #expect(world.send("GET", "/v1/notes/2").status == 404)
        }
    }

    @Test func pullsComeByThemselvesAndAfterReconnection() async throws {
        try await World.with(upstream: Self.upstream()) { world in
            _ = try await world.send("GET", "/v1/notes")
            let lastSync = { try await world.server.get("/v1/entities").json?["items"]?.array?.first?["lastSync"]?.string }
            let first = try await eventualValue("the first pull", lastSync)
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/2", body: #"{"title":"mine"}"#)
            world.api.edit(note: "1", with: ["title": "edited"])
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "delivered")
            try await eventually("a pull behind the push") {
                let targets = world.requests.map { "\($0.method.rawValue) \($0.target.prefix { $0 != "=" })" }
                guard let patch = targets.firstIndex(of: "PATCH /v1/notes/2") else { return false }
                return targets[patch...].contains("GET /v1/notes?updatedAfter")
            }
            try await eventually("the end of that pull") { try await lastSync() != first }
            await world.goOffline()
            try await #expect(titles(world) == ["edited", "mine"])
        }
    }

    @Test func aConflictIsSeenBeforeItIsMet() async throws {
        try await World.with(upstream: Self.upstream()) { world in
            let etag = try #require(try await world.send("GET", "/v1/notes/1")["etag"])
            _ = try await pull(world)
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "offline"])
            let id = try await world.queued("PUT", "/v1/notes/1", fields: ["If-Match: \(etag)"], body: #"{"title":"mine"}"#)
            world.api.edit(note: "1", with: ["title": "theirs"])
            world.api.inject { $0.canned = .init(status: 503, fields: [.retryAfter: "30"], methods: [.put]) }
            _ = try await world.server.change("PUT", "/v1/network", ["mode": "auto"])
            try await eventually("the attempt is put off") {
                try await world.server.get("/v1/operations/\(id)").json?["lastError"]?.string?.contains("503") == true
            }
            let report = try await pull(world)
            #expect(report["withheld"] == 1, "\(report)")
            await world.goOffline()
            // Neither version overwrites the other: the client reads its own write, on the base that the write was made on.
            let shown = try await world.send("GET", "/v1/notes/1")
            #expect(shown.json?["title"] == "mine" && shown["rockpool-state"] == "pending")
        }
    }

    /// A batch has one credential: what came with other cookies is sent by itself, with these.
    @Test(arguments: ["auto", "cookie:sid"]) func aBatchIsOfOneUser(identity: String) async throws {
        let gate = identity == "auto" ? ["Authorization: Basic c2l0ZTpwYXNz"] : []
        var upstream = Self.upstream(["push": "/v1/sync/push"])
        upstream["identity"] = .string(identity)
        try await World.with(upstream: upstream) { world in
            let cookies = { (user: Int) in gate + ["Cookie: sid=site; user=\(user)"] }
            for user in 0..<2 { try await #expect(world.send("GET", "/v1/notes/1", fields: cookies(user)).status == 200) }
            await world.goOffline()
            for n in 0..<20 { _ = try await world.queued("POST", "/v1/notes", fields: cookies(n % 2), body: #"{"title":"note \#(n)"}"#) }
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            // The API notes the members of a batch too, without cookies.
            let sent = world.api.log().filter { $0.method == .post && $0.fields.contains(.cookie) }
            #expect(sent.contains { $0.target == "/v1/sync/push" }, "\(sent.map(\.target))")
            var count = 0
            for request in sent {
                let notes = String(decoding: request.body, as: UTF8.self).matches(of: /note (\d+)/).compactMap { Int($0.1) }
                let user = request.fields[.cookie]?.last.flatMap { Int(String($0)) }
                #expect(notes.allSatisfy { $0 % 2 == user }, "\(request.target): \(notes) with \(request.fields)")
                count += notes.count
            }
            #expect(count == 20)
        }
    }

    @Test(arguments: [false, true]) func queuedNotesGoInOneRequest(answerIsLost: Bool) async throws {
        let upstream = Self.upstream(["push": "/v1/sync/push"])
        try await World.with(upstream: upstream) { world in
            await world.goOffline()
            var ids: [String] = []
            for n in 0..<20 { ids.append(try await world.queued("POST", "/v1/notes", body: #"{"title":"\#(n)"}"#)) }
            if answerIsLost { world.api.inject { $0.commitThenDrop = 1 } }
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            for id in ids {
                let operation = try #require(try await world.server.get("/v1/operations/\(id)").json)
                let key = try #require(operation["idempotencyKey"]?.string)
                #expect(operation["state"] == "delivered" && world.api.effects(forKey: key) == 1, "\(operation)")
            }
            #expect(
                Set(world.api.notes.compactMap { $0.members["title"]?.string }) == Set((0..<20).map(String.init) + ["first", "second"]))
            // The first batch has three members, so that a broken server does not refuse all. What was in one whose answer was lost goes one by
            // one.
            let batches = world.arrivals("POST", "/v1/sync/push")
            #expect((1...3).contains(batches), "\(batches)")
            let nothing = try await world.server.command("sync", "push", "--format", "json")
            #expect(nothing.status == 0, "all is delivered: \(nothing.errors)")
            let log = try await world.server.command("sync", "log", "--limit", "20", "--format", "json")
            #expect(log.status == 0 && log.output.contains("delivered"), "\(log.errors)")
        }
    }
}
