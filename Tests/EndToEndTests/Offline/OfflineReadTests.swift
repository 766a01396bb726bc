// docs/guide/offline-app.md: a cold start while offline, and going offline during use. Reads are served and marked as stale
// (docs/caching.md#offline-use; docs/reference/behaviour.md#offline-reads).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct OfflineReadTests {
    @Test(arguments: Door.allCases) func offlineWhileInUse(_ door: Door) async throws {
        try await World.with { world in
            let online = try await world.send("GET", "/v1/notes/1", via: door)
            await world.goOffline()
            for _ in 0..<2 {
                let offline = try await world.send("GET", "/v1/notes/1", via: door)
                #expect(offline.status == 200 && offline.body == online.body && offline["etag"] == online["etag"])
                let said = try #require(offline["cache-status"])
                #expect(said.hasPrefix("rockpool; hit; ttl=") && said.hasSuffix("; detail=offline"), "\(said)")
                let error = try #require(offline["proxy-status"])
                #expect(error.hasPrefix("rockpool; error=") && error.contains("connection_refused"), "\(error)")
                #expect(offline["age"].flatMap { Int($0) } != nil)
            }
        }
    }

    @Test(arguments: Door.allCases) func aMissWhileOfflineIsSaidAtOnce(_ door: Door) async throws {
        try await World.with { world in
            await world.goOffline()
            let miss = try await world.send("GET", "/v1/notes/2", via: door)
            expectProblem(miss, "offline-miss", 504)
            #expect(miss.json?["upstream"]?.string == "notes" && miss["proxy-status"]?.contains("connection_refused") == true)
            try await eventually("offline status") { try await world.server.get("/v1/status").json?["state"]?.string == "offline" }
        }
    }

    @Test func coldStartOffline() async throws {
        try await World.with { world in
            let online = try await world.send("GET", "/v1/notes/1")
            let large = try await world.send("GET", "/v1/assets/100000")
            await world.goOffline()
            try await #expect(world.server.stop() == .exit(0))
            try await world.server.start()
            let offline = try await world.send("GET", "/v1/notes/1")
            #expect(offline.status == 200 && offline.body == online.body)
            #expect(offline["cache-status"]?.contains("detail=offline") == true, "\(offline["cache-status"] ?? "none")")
            let stored = try await world.send("GET", "/v1/assets/100000", via: .proxy)
            #expect(stored.status == 200 && stored.body == large.body)
            expectProblem(try await world.send("GET", "/v1/notes/2"), "offline-miss", 504)
        }
    }

    @Test func coldStartAfterACrashOffline() async throws {
        try await World.with { world in
            let online = try await world.send("GET", "/v1/notes/1")
            try await eventually("the entry on disk") {
                try await world.server.get("/v1/stats").json?["cache"]?["entries"]?.integer == 1
            }
            await world.goOffline()
            try await world.server.kill()
            try await world.server.start()
            let offline = try await world.send("GET", "/v1/notes/1")
            #expect(offline.status == 200 && offline.body == online.body)
        }
    }

    /// Programs that send a password only after a 401 (RFC 9110 §11.6.1) read what is stored for it; a request without one is asked, as online.
    @Test func aPasswordIsAskedForOffline() async throws {
        let secret = "Authorization: Basic \(Data("u:p".utf8).base64EncodedString())"
        let play: PlayedSite.Play = { asked in
            let hasPassword = asked["authorization"].map { "Authorization: " + $0 } == secret
            if hasPassword { return .text("secret", "Cache-Control: max-age=9") }
            return .text("who?", status: 401, "WWW-Authenticate: Basic realm=x", "Cache-Control: max-age=9")
        }
        try await PlayedWorld.with(play) { world in
            let read = { (password: String) in try await world.get("/a", options: ["--anyauth", "--user", "u:\(password)"]) }
            try await #expect(world.get("/a").status == 401)
            try await #expect(read("p").text == "secret")
            let asked = world.site.count("/a")
            try await #expect(world.get("/a").status == 401, "a challenge is never fresh")
            #expect(world.site.count("/a") == asked + 1)
            try await world.turn("offline")
            let away = try await read("p")
            #expect(away.status == 200 && away.text == "secret", "\(away.status) \(away.text)")
            let asks = try await world.get("/a")
            #expect(asks.status == 401 && asks["www-authenticate"] == "Basic realm=x")
            // A wrong password is not known to be one.
            try await #expect(world.get("/a", ["Authorization: Basic eDp5"]).status == 504)
        }
    }

    /// A challenge is that of all places below its directory: what was read with a password sent at once is there for who waits to be asked.
    @Test func aPasswordIsAskedForInItsProtectionSpace() async throws {
        let secret = "Authorization: Basic \(Data("u:p".utf8).base64EncodedString())"
        let play: PlayedSite.Play = { asked in
            let hasPassword = asked["authorization"].map { "Authorization: " + $0 } == secret
            if hasPassword || asked.path.hasPrefix("/open/") { return .text("of \(asked.path)", "Cache-Control: max-age=9") }
            return .text("who?", status: 401, "WWW-Authenticate: Basic realm=x", "Set-Cookie: s=1")
        }
        try await PlayedWorld.with(play) { world in
            let options = ["--anyauth", "--user", "u:p"]
            try await #expect(world.get("/notes/1").status == 401)
            for path in ["/notes/2", "/notes/deep/3", "/other/4"] {
                try await #expect(world.get(path, [secret]).status == 200)
                try await world.stored(path)
            }
            try await #expect(world.get("/open/5").status == 200)
            try await world.stored("/open/5")
            try await eventually("the challenge is kept") {
                try await world.server.get("/v1/cache/entry?url=\(world.url("/notes/"))").status == 200
            }
            try await world.turn("offline")
            for path in ["/notes/2", "/notes/deep/3"] {
                let asks = try await world.get(path)
                #expect(asks.status == 401 && asks["www-authenticate"] == "Basic realm=x" && asks["set-cookie"] == nil && asks.text.isEmpty)
                try await #expect(world.get(path, options: options).text == "of " + path)
                try await #expect(world.get(path, options: ["--anyauth", "--user", "u:wrong"]).status == 504)
            }
            // Not in the space, or not protected.
            try await #expect(world.get("/other/4").status == 504)
            try await #expect(world.get("/open/5").status == 200)
        }
    }

    /// curl begins such a write without its body. That is no write to keep.
    @Test func aWriteThatWaitsToBeAskedIsKeptWithItsPassword() async throws {
        let play: PlayedSite.Play = { asked in
            asked["authorization"] == nil ? .text("who?", status: 401, "WWW-Authenticate: Basic realm=x") : .text("done")
        }
        try await PlayedWorld.with(play) { world in
            let write = { try await world.send("PUT", "/notes/1", body: $0, options: ["--anyauth", "--user", "u:p"]) }
            try await #expect(write("one").status == 200)
            try await eventually("the challenge is kept") {
                try await world.server.get("/v1/cache/entry?url=\(world.url("/notes/"))").status == 200
            }
            try await world.turn("offline")
            try await #expect(write("two").status == 202)
            try await #expect(world.server.operations().count == 1)
            try await world.turn("auto")
            try await eventually("it is delivered") { world.site.asked.last?.body == "two" }
            #expect(world.site.asked.allSatisfy { $0["authorization"] == nil || !$0.body.isEmpty })
        }
    }

    /// The URLs of downloads answer with a redirect at registries and mirrors.
    @Test func aTemporaryRedirectIsFollowedOffline() async throws {
        let play: PlayedSite.Play = { asked in
            asked.path == "/file" ? .text("bytes") : PlayedSite.Said(status: 302, fields: ["Location: /file"])
        }
        try await PlayedWorld.with(play) { world in
            for mode in ["auto", "offline"] {
                try await world.turn(mode)
                let read = try await world.get("/dl", options: ["--location"])
                #expect(read.text.hasSuffix("bytes"), "\(mode): \(read.status) \(read.text)")
            }
        }
    }

    @Test func aStandardUpstreamObeysTheRFC() async throws {
        try await World.with(upstream: ["policy": "standard"]) { world in
            _ = try await world.send("GET", "/v1/notes/1")
            let fresh = try await world.send("GET", "/v1/assets/100")
            await world.goOffline()
            expectProblem(try await world.send("GET", "/v1/notes/1"), "offline-miss", 504)
            try await #expect(world.send("GET", "/v1/assets/100").body == fresh.body)
        }
    }

    @Test func aWriteToAnUndeclaredHostIsNotQueued() async throws {
        try await World.with { world in
            let reply = try await Curl.send("POST", "http://127.0.0.1:\(FreePort.next())/x", proxy: world.server.proxy, body: "x")
            expectProblem(reply, "upstream-error", 502)
            #expect(reply["proxy-status"]?.contains("connection_refused") == true)
            try await #expect(world.server.operations().isEmpty)
        }
    }

    @Test func theSwitchKeepsEveryPacketHome() async throws {
        try await World.with { world in
            let online = try await world.send("GET", "/v1/notes/1")
            try await #expect(world.server.command("network", "offline").status == 0)
            let seen = world.requests.count
            let offline = try await world.send("GET", "/v1/notes/1")
            #expect(offline.body == online.body && offline["cache-status"]?.contains("detail=offline") == true)
            expectProblem(try await world.send("GET", "/v1/notes/2"), "offline-miss", 504)
            let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"later"}"#)
            #expect(world.requests.count == seen)
            try await #expect(world.server.get("/v1/network").json?["mode"]?.string == "offline")
            try await #expect(world.server.command("network", "auto").status == 0)
            _ = try await world.server.operation(id, reaching: "delivered")
            try await #expect(world.send("GET", "/v1/notes/1").text.contains("later"))
        }
    }

    /// The page of a captive portal neither replaces a stored copy nor consumes a write (docs/caching.md#offline-use *good copy*).
    @Test func aCaptivePortalIsNoAnswer() async throws {
        try await World.with { world in
            let online = try await world.send("GET", "/v1/notes/1")
            world.api.faults.portal = .page
            try await eventually("captive") {
                try await world.server.get("/v1/network").json?["upstreams"]?.array?.first?["reachability"]?.string == "captive"
            }
            let read = try await world.send("GET", "/v1/notes/1")
            #expect(read.body == online.body && read["cache-status"]?.contains("hit") == true, "\(read["cache-status"] ?? "")")
            let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"through"}"#)
            world.api.faults.portal = nil
            _ = try await world.server.operation(id, reaching: "delivered")
            try await #expect(world.send("GET", "/v1/notes/1").text.contains("through"))
        }
    }
}
