// Cache rules that are easily implemented incompletely: targeted fields, the newest Vary, groups per origin, errors and dates (RFC 9213
// §2.1; RFC 9111 §4.1, §4.3.2; RFC 9875; RFC 5861 §4).
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct RuleTests {
    /// A number of seconds must be an integer: a field with another type is ignored (RFC 9213 §2.1).
    @Test(arguments: ["max-age=\"100\"", "max-age=1.5"]) func aTargetedFieldOfAnotherTypeIsIgnored(_ value: String) async throws {
        try await PlayedWorld.with({ _ in .text("x", "Cache-Control: max-age=0", "CDN-Cache-Control: \(value)") }) { world in
            for round in 1...2 {
                try await #expect(world.get("/a").text == "x")
                #expect(world.site.count("/a") == round)
            }
        }
    }

    /// The Vary of the newest response also applies to the older ones (RFC 9111 §4.1).
    @Test func theNewestVaryCounts() async throws {
        let play: PlayedSite.Play = { asked in
            guard let tenant = asked["x-tenant"] else { return .text("all", "Cache-Control: max-age=600") }
            return .text(tenant, "Cache-Control: max-age=600", "Vary: X-Tenant")
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.get("/a").text == "all")
            try await world.stored("/a")
            try await #expect(world.get("/a", ["X-Tenant: one", "Cache-Control: no-cache"]).text == "one")
            try await eventually("the variant is stored") {
                try await world.get("/a", ["X-Tenant: one", "Cache-Control: only-if-cached"]).text == "one"
            }
            #expect(world.site.count("/a") == 2)
            try await #expect(world.get("/a", ["X-Tenant: two"]).text == "two")
            #expect(world.site.count("/a") == 3)
        }
    }

    // MARK: groups

    /// Runs `body` with two origins, each with a stored response in a group of the same name: `/a` of `notes`, `/b` of the other.
    private func withTwoOrigins(_ body: (_ world: PlayedWorld, _ other: String) async throws -> Void) async throws {
        let play: PlayedSite.Play = { _ in .text("x", "Cache-Control: max-age=600", "Cache-Groups: \"g\"") }
        let other = try await PlayedSite.start(play)
        let entry = ServerSettings.declaration("other", port: other.port)
        try await PlayedWorld.with(others: [entry], play) { world in
            let url = "http://127.0.0.1:\(other.port)/b"
            try await #expect(world.get("/a").status == 200)
            try await #expect(Curl.send("GET", url, proxy: world.server.proxy).status == 200)
            try await eventually("both are stored") { try await stored(world).count == 2 }
            try await body(world, url)
        }
        await other.stop()
    }

    /// Returns the URLs of the stored responses.
    private func stored(_ world: PlayedWorld) async throws -> [String] {
        try await world.server.get("/v1/cache").json?["items"]?.array?.compactMap { $0["url"]?.string } ?? []
    }

    @Test func aGroupIsPurgedOfOneUpstreamOrOfAll() async throws {
        try await withTwoOrigins { world, other in
            let one = try await world.server.command("cache", "purge", "--group", "g", "--upstream", "notes", "--format", "json")
            #expect(one.status == 0, "\(one.errors)")
            #expect(try JSONValue.parse(Array(one.output.utf8))["entries"]?.integer == 1, "\(one.output)")
            try await #expect(stored(world) == [other])
            try await #expect(world.server.command("cache", "purge", "--group", "g").status == 0)
            try await #expect(stored(world).isEmpty)
        }
    }

    @Test func theAdminAPIPurgesAGroupOfOneUpstream() async throws {
        try await withTwoOrigins { world, other in
            let dry = try await world.server.change("DELETE", "/v1/cache?group=g&upstream=notes&dryRun=true")
            #expect(dry.status == 200 && dry.json?["entries"]?.integer == 1, "\(dry.text)")
            let one = try await world.server.change("DELETE", "/v1/cache?group=g&upstream=notes")
            #expect(one.status == 200 && one.json?["entries"]?.integer == 1, "\(one.text)")
            try await #expect(stored(world) == [other])
            let rest = try await world.server.change("DELETE", "/v1/cache?group=g")
            #expect(rest.status == 200 && rest.json?["entries"]?.integer == 1, "\(rest.text)")
        }
    }

    // MARK: errors and dates

    @Test(arguments: ["max-age=0, stale-if-error=600", "max-age=0"])
    func aCopyStandsInForAServerThatFails(_ cacheControl: String) async throws {
        try await PlayedWorld.with({ _ in .text("good", "Cache-Control: \(cacheControl)", "ETag: \"v1\"") }) { world in
            try await #expect(world.get("/a").text == "good")
            try await world.stored("/a")
            world.site.play { _ in .text("broken", status: 500) }
            for _ in 0..<2 {
                let reply = try await world.get("/a")
                #expect(reply.status == 200 && reply.text == "good", "\(reply.status) \(reply.text)")
                #expect(reply["cache-status"]?.contains("hit") == true, "\(reply["cache-status"] ?? "none")")
            }
            #expect(world.site.count("/a") >= 3)
        }
    }

    /// Without Last-Modified, a stored response is compared by its Date (RFC 9111 §4.3.2).
    @Test func aCopyWithoutLastModifiedIsComparedByItsDate() async throws {
        let date = HTTPDate.format(NotesServer.systemClock())
        try await PlayedWorld.with({ _ in .text("good", "Cache-Control: max-age=600", "Date: \(date)") }) { world in
            let first = try await world.get("/a")
            #expect(first.text == "good" && first["date"] == date && first["last-modified"] == nil, "\(first.heads)")
            try await world.stored("/a")
            let reply = try await world.get("/a", ["If-Modified-Since: \(date)"])
            #expect(reply.status == 304 && reply.body.isEmpty, "\(reply.status) \(reply.text)")
            let older = try await world.get("/a", ["If-Modified-Since: Sun, 01 Jan 2023 00:00:00 GMT"])
            #expect(older.status == 200 && older.text == "good", "\(older.status)")
            #expect(world.site.count("/a") == 1)
        }
    }
}
