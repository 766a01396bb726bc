// A page of another origin in headless Chromium and Firefox: it reads, creates, edits and deletes while the API is down, and reads the replies'
// fields; a page that the API never allowed does none of it (docs/caching.md#pages-of-other-origins).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .enabled(if: !BrowserKind.installed.isEmpty, "no browser is installed: make clients")) struct CrossOriginTests {
    private static let optimistic: JSONValue = [
        "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}", "offline_response": "optimistic"]]
    ]

    @Test(arguments: BrowserKind.installed) func anAllowedPageWorksOfflineAndEveryWriteIsAppliedOnce(_ kind: BrowserKind) async throws {
        let host = try await WebPage.serve()
        let settings = NotesSettings(pages: ["http://127.0.0.1:\(host.port)"])
        try await World.with(api: settings, upstream: Self.optimistic) { world in
            let page = try await WebPage(host, in: kind.window())
            let notes = "http://\(world.server.gateway)/v1/notes"
            try await #expect(page.fetch("GET", notes)["status"]?.integer == 200)
            try await #expect(page.fetch("GET", notes + "/1")["status"]?.integer == 200)
            try await #expect(page.fetch("PATCH", notes + "/2", json: "{title: 'online'}")["status"]?.integer == 200)
            await world.goOffline()
            let created = try await page.fetch("POST", notes, json: "{title: 'from a page'}")
            #expect(created["status"]?.integer == 201, "\(created)")
            let fields = created["fields"]
            let location = try #require(fields?["location"]?.string)
            #expect(fields?["etag"]?.string != nil && fields?["cache-status"]?.string?.contains("queued") == true)
            #expect(fields?["rockpool-operation"]?.string != nil && fields?["rockpool-state"] == "pending", "\(created)")
            let item = "http://\(world.server.gateway)\(location)"
            try await #expect(page.fetch("PATCH", item, json: "{title: 'edited'}")["status"]?.integer == 200)
            let read = try await page.fetch("GET", item)
            #expect(read["body"]?.string?.contains("edited") == true && read["fields"]?["rockpool-pending"] != nil, "\(read)")
            try await #expect(page.fetch("DELETE", notes + "/1")["status"]?.integer == 204)
            try await #expect(page.fetch("GET", notes)["body"]?.string?.contains("edited") == true)
            let id = try #require(fields?["rockpool-operation"]?.string)
            let document = "http://\(world.server.gateway)/.well-known/rockpool/operations/\(id)"
            try await #expect(page.fetch("GET", document)["status"]?.integer == 200)
            try await world.api.restart()
            try await world.server.outboxIsEmpty()
            #expect(world.api.notes.map { $0.members["title"] } == ["online", "edited"])
            for operation in try await world.server.operations() {
                #expect(world.api.effects(forKey: operation["idempotencyKey"]?.string ?? "") == 1)
            }
        }
        await host.stop()
    }

    /// The page keeps its permissions over a restart of the server, and a refusal of the API ends them.
    @Test(arguments: BrowserKind.installed) func permissionsSurviveARestart(_ kind: BrowserKind) async throws {
        let host = try await WebPage.serve()
        let settings = NotesSettings(pages: ["http://127.0.0.1:\(host.port)"])
        try await World.with(api: settings) { world in
            let page = try await WebPage(host, in: kind.window())
            let notes = "http://\(world.server.gateway)/v1/notes"
            try await #expect(page.fetch("PATCH", notes + "/2", json: "{title: 'online'}")["status"]?.integer == 200)
            await world.goOffline()
            try await world.server.stop()
            try await world.server.start()
            let queued = try await page.fetch("DELETE", notes + "/2")
            #expect(queued["status"]?.integer == 202 && queued["fields"]?["location"] != nil, "\(queued)")
        }
        await host.stop()
    }

    /// A hostile page of another site: its forms, texts and `no-cors` requests reach the API while it answers, and are never queued.
    @Test(arguments: BrowserKind.installed, ["localhost", "127.0.0.1"])
    func aHostilePageQueuesNothing(_ kind: BrowserKind, _ name: String) async throws {
        let (host, evil) = (try await WebPage.serve(), try await WebPage.serve())
        let settings = NotesSettings(pages: ["http://127.0.0.1:\(host.port)"])
        try await World.with(api: settings) { world in
            let browser = try await kind.window()
            let notes = "http://\(world.server.gateway)/v1/notes"
            var page = try await WebPage(host, in: browser)
            try await #expect(page.fetch("PATCH", notes + "/2", json: "{title: 'online'}")["status"]?.integer == 200)
            page = try await WebPage(evil, name: name, in: browser)
            let live = try await page.fetch("POST", notes, text: "forged", mode: "no-cors")
            #expect(live["type"] == "opaque" && world.arrivals("POST", "/v1/notes") == 1)
            await world.goOffline()
            try await #expect(page.fetch("GET", notes)["error"] != nil)
            try await #expect(page.fetch("PATCH", notes + "/2", json: "{title: 'forged'}")["error"] != nil)
            try await #expect(page.fetch("POST", notes, text: "forged")["error"] != nil)
            try await #expect(page.fetch("POST", notes, text: "forged", mode: "no-cors")["type"] == "opaque")
            try await page.submit(to: notes)
            try await browser.sees("not-queueable")
            try await #expect(world.server.operations().isEmpty)
        }
        await host.stop()
        await evil.stop()
    }
}
