// Lifetimes that a route sets, and stale responses in place of errors where the configuration permits them (docs/caching.md#lifetimes-by-route).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct LifetimeTests {
    private static func answer(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        switch asked.path {
        case "/never": .text("x", "Cache-Control: no-cache, max-age=0", "ETag: \"v1\"")
        case "/forever": .text("x", "Cache-Control: max-age=315360000")
        default: .text("x", "Cache-Control: no-cache, max-age=0")
        }
    }

    @Test func aRouteSetsTheLifetimesOfItsResponses() async throws {
        let routes: JSONValue = [
            ["match": "/never", "ttl": ["default": "10m", "override": true]], ["match": "/forever", "ttl": ["max": "1h"]],
        ]
        try await PlayedWorld.with(upstream: ["policy": "standard", "routes": routes], { Self.answer($0) }) { world in
            for (path, ttl) in [("/never", 600), ("/forever", 3600)] {
                try await #expect(world.get(path).status == 200)
                try await world.stored(path)
                // The first hit of the full path, and those that are kept ready.
                for _ in 1...3 {
                    let hit = try await world.get(path)
                    let status = hit["cache-status"] ?? "none"
                    #expect(status.hasPrefix("rockpool; hit; ttl=") && status.hasSuffix("; detail=route-ttl"), "\(path): \(status)")
                    let left = status.split(separator: ";").first { $0.hasPrefix(" ttl=") }.flatMap { Int($0.dropFirst(5)) }
                    #expect(left.map { ttl - 60...ttl ~= $0 } == true, "\(path): \(status)")
                }
                #expect(world.site.count(path) == 1)
                let told = try await world.server.get("/v1/cache/explain?url=\(world.url(path))").json
                #expect(told?["decision"]?.string == "fresh" && told?["reason"]?.string == "route", "\(told ?? .null)")
            }
            // Without a rule the response counts.
            for round in 1...2 {
                try await #expect(world.get("/other").status == 200)
                #expect(world.site.count("/other") == round)
            }
        }
    }

    /// What two clients may share only because each use is validated is not shared any more.
    @Test func anOverriddenAnswerToACredentialIsForItsClientOnly() async throws {
        let upstream: JSONValue = ["policy": "standard", "routes": [["match": "/mine", "ttl": ["default": "10m", "override": true]]]]
        let play: PlayedSite.Play = { asked in
            .text(asked["authorization"] ?? "nobody", "Cache-Control: max-age=0, must-revalidate", "ETag: \"v1\"")
        }
        try await PlayedWorld.with(upstream: upstream, play) { world in
            let (ann, bob) = ("Authorization: Bearer ann", "Authorization: Bearer bob")
            try await #expect(world.get("/mine", [ann]).text == "Bearer ann")
            try await eventually("the copy is served to its client") {
                try await world.get("/mine", [ann])["cache-status"]?.contains("hit") == true
            }
            try await #expect(world.get("/mine", [bob]).text == "Bearer bob")
            try await #expect(world.get("/mine", [ann]).text == "Bearer ann")
            try await #expect(world.get("/mine").text == "nobody")
        }
    }

    @Test(arguments: [500, 503, 520, 529]) func aStaleCopyStandsInWithinTheWindow(_ status: Int) async throws {
        let upstream: JSONValue = [
            "policy": "standard", "stale_on_error": "1h", "routes": [["match": "/strict", "stale_on_error": "0s"]],
        ]
        try await PlayedWorld.with(upstream: upstream, { _ in .text("good", "Cache-Control: max-age=0", "ETag: \"v1\"") }) { world in
            for path in ["/a", "/strict"] {
                try await #expect(world.get(path).text == "good")
                try await world.stored(path)
            }
            // A lifetime of zero is over after a moment.
            try await Task.sleep(for: .milliseconds(1100))
            world.site.play { _ in .text("broken", status: status) }
            let reply = try await world.get("/a")
            #expect(reply.status == 200 && reply.text == "good", "\(reply.status) \(reply.text)")
            #expect(reply["cache-status"]?.contains("detail=stale-if-error") == true, "\(reply["cache-status"] ?? "none")")
            try await #expect(world.get("/strict").status == status)
        }
    }

    @Test func theWindowHoldsForUndeclaredHosts() async throws {
        let site = try await PlayedSite.start { _ in .text("good", "Cache-Control: max-age=0", "ETag: \"v1\"") }
        var settings = ServerSettings()
        settings.defaults = ["stale_on_error": "1h"]
        let server = try await ServerProcess.start(settings)
        let url = "http://127.0.0.1:\(site.port)/a"
        try await #expect(Curl.send("GET", url, proxy: server.proxy).text == "good")
        try await eventually("it is stored") { try await server.get("/v1/cache/entry?url=\(url)").status == 200 }
        site.play { _ in .text("broken", status: 500) }
        try await Task.sleep(for: .milliseconds(1100))
        let reply = try await Curl.send("GET", url, proxy: server.proxy)
        #expect(reply.status == 200 && reply.text == "good", "\(reply.status) \(reply.text)")
        try await server.stop()
        await site.stop()
    }
}
