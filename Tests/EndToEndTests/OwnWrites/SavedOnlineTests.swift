// Writes that were answered online: what is read afterwards, and what the next write builds on (docs/outbox.md#effects).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct SavedOnlineTests {
    /// B1. Session guarantee: read your writes.
    @Test(arguments: Setting.answered) func whatWasSavedOnlineIsReadOffline(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            for path in ["/v1/notes", "/v1/notes/1", "/v1/notes/2", "/v1/notes/3"] { try await #expect(story.get(path).status == 200) }
            try await story.write("PUT", "/v1/notes/1", ["title": "saved", "status": "open", "count": 5, "done": false])
            try await story.write("DELETE", "/v1/notes/2")
            try await story.write("PATCH", "/v1/notes/3", ["title": "patched"])
            let created = try await story.write("POST", "/v1/notes", ["title": "new", "status": "open"])
            let place = try #require(created.head["location"])
            try await story.device.network("offline")

            for (path, title) in [("/v1/notes/1", "saved"), ("/v1/notes/3", "patched"), (place, "new")] {
                let answer = try await story.get(path)
                #expect(answer.status == 200 && answer.json?["title"]?.string == title, "\(path): \(answer.status) \(answer.text)")
                #expect(answer.head["rockpool-dirty"] == nil)
            }
            try await #expect(story.get("/v1/notes/2").status == 404, "a remembered absence, not a miss")
            let list = try await story.get("/v1/notes")
            let titles = list.json?.array?.compactMap { $0["title"]?.string }
            #expect(titles.map { Set($0) } == ["saved", "patched", "new"] && titles?.count == 3, "\(list.status) \(list.text)")
        }
    }

    /// B1, after a restart of the proxy.
    @Test(arguments: Setting.all) func itIsStillReadAfterARestart(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.write("PATCH", "/v1/notes/1", ["title": "saved"])
            try await story.write("DELETE", "/v1/notes/2")
            try await story.device.network("offline")
            try await story.device.server.kill()
            try await story.device.server.start()
            let wire = try await Wire.open(story.device.server.gateway)
            let answer = try await wire.send("GET", "/v1/notes/1")
            #expect(answer.json?["title"]?.string == "saved", "\(answer.status) \(answer.text)")
            try await #expect(wire.send("GET", "/v1/notes/2").status == 404)
            await wire.close()
        }
    }

    /// An ETag may cover the content only, so the copy from before a write is not validated by it.
    @Test(arguments: Setting.all) func theNextReadIsFetchedWithoutTheOldValidator(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.write("PATCH", "/v1/notes/1", ["title": "saved"])
            let answer = try await story.get("/v1/notes/1")
            #expect(answer.json?["title"]?.string == "saved", "\(answer.text)")
            let last = try #require(story.api.log.last)
            #expect(last.method == "GET" && last.path == "/v1/notes/1" && last.head["if-none-match"] == nil)
        }
    }

    /// B2. Session guarantee: writes follow reads. The base of the offline write is the answer to the online one.
    @Test(arguments: Setting.answered) func anOfflineWriteBuildsOnTheOnlineOne(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "one"]))
            try await story.device.network("offline")
            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "two"]))
            story.api.edit("1", ["status": "theirs"])
            try await story.comeBack()
            try await story.expectBothSides("1", mine: ["title": "two"], theirs: ["status": "theirs"])
        }
    }

    /// B2 without anybody else: no conflict with one's own write. Session guarantee: monotonic writes.
    @Test(arguments: Setting.answered) func oneClientHasNoConflictWithItself(_ setting: Setting) async throws {
        try await Story.with(setting) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "one"]))
            try await story.device.network("offline")
            try await story.write("PUT", "/v1/notes/1", Story.base.merging(["title": "two"]))
            try await story.write("PATCH", "/v1/notes/1", ["status": "closed"])
            try await story.comeBack()
            try await #expect(story.conflicts().isEmpty)
            expectSame(
                story.api.notes["1"], Story.base.merging(["id": "1", "title": "two", "status": "closed"]), setting.testDescription)
        }
    }

    /// B3. Session guarantee: writes follow reads. A counter is merged from the value that the client saw last.
    @Test(arguments: Setting.all) func aCounterCountsEachStepOnce(_ setting: Setting) async throws {
        try await Story.with(setting, resource: ["fields": ["/count": "counter"]]) { story in
            try await #expect(story.get("/v1/notes/1").json?["count"] == 5)
            try await story.device.network("offline")
            try await story.write("PATCH", "/v1/notes/1", ["count": 6])
            try await story.comeBack()
            #expect(story.api.notes["1"]?["count"] == 6)
            try await story.write("PATCH", "/v1/notes/1", ["count": 16])
            try await story.device.network("offline")
            try await story.write("PATCH", "/v1/notes/1", ["count": 17])
            try await story.comeBack()
            #expect(story.api.notes["1"]?["count"] == 17, "\(story.api.notes)")
            try await #expect(story.conflicts().isEmpty)
        }
    }

    /// Deliveries come faster than a list can be stored anew for each. They are worked into it together: a stop waits for no queue of them, and
    /// the list has every one.
    @Test func aStopSoonAfterALongReplayIsQuickAndLosesNothing() async throws {
        try await Story.with(try #require(Setting.answered.first)) { story in
            try await #expect(story.get("/v1/notes").status == 200)
            let before = try #require(try await story.get("/v1/notes").json?.array?.count)
            try await story.device.network("offline")
            let text = String(repeating: "x", count: 4_000)
            for number in 0..<150 { try await story.write("POST", "/v1/notes", ["title": .string("n\(number)"), "status": .string(text)]) }
            try await story.comeBack()
            try await story.device.network("offline")
            let started = ContinuousClock.now
            try await #expect(story.device.server.stop() == .exit(0))
            #expect(ContinuousClock.now - started < .seconds(10))
            try await story.device.server.start()
            let wire = try await Wire.open(story.device.server.gateway)
            let list = try await wire.send("GET", "/v1/notes")
            let titles = Set(list.json?.array?.compactMap { $0["title"]?.string } ?? [])
            #expect(list.json?.array?.count == before + 150 && titles.isSuperset(of: (0..<150).map { "n\($0)" }), "\(list.status)")
            await wire.close()
        }
    }

    /// A read that its upstream never answers is answered by the copy of that moment, which is not the one from before it was sent.
    @Test func aCopyThatWasReplacedMeanwhileStandsIn() async throws {
        let list = #"[{"id": "1", "title": "one"}]"#
        let reads = Mutex(0)
        let play: PlayedSite.Play = { asked in
            if asked.method == "PUT" { return .text(#"{"id": "1", "title": "two"}"#, "Content-Type: application/json") }
            guard asked.method == "GET", asked.path == "/notes" else { return .text("", status: 404) }
            let isFirst = reads.withLock { count in
                count += 1
                return count == 1
            }
            return isFirst ? .text(list, "Content-Type: application/json", "Cache-Control: no-cache") : PlayedSite.Said(wire: [])
        }
        try await PlayedWorld.with(upstream: ["resources": [["collection": "/notes"]]], play) { world in
            try await #expect(world.send("GET", "/notes").status == 200)
            async let unanswered = world.send("GET", "/notes")
            try await eventually("the list is asked for again") { world.site.count("/notes", "GET") == 2 }
            let put = try await world.send(
                "PUT", "/notes/1", fields: ["Content-Type: application/json"], body: #"{"id": "1", "title": "two"}"#)
            #expect(put.status == 200, "\(put.text)")
            await world.site.stop()
            let read = try await unanswered
            #expect(read.status == 200 && read.text.contains("two"), "\(read.status) \(read.text)")
        }
    }
}
