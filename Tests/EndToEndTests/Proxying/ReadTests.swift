// Reads while the upstream is online: misses, hits, validation, variants, partitions (RFC 9111; RFC 9211; docs/caching.md#overview).
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct ReadTests {
    static let fresh = NotesSettings(cacheControl: "max-age=600")

    @Test(arguments: Door.allCases) func aMissIsStoredAndThenHit(_ door: Door) async throws {
        try await World.with { world in
            let miss = try await world.send("GET", "/v1/assets/40000", via: door)
            #expect(miss.status == 200 && miss.body.count == 40000)
            #expect(miss["cache-status"] == "rockpool; fwd=uri-miss; stored")
            #expect(miss["via"]?.hasPrefix("1.1 rockpool") == true)
            let hit = try await world.send("GET", "/v1/assets/40000", via: door)
            #expect(hit.status == 200 && hit.body == miss.body)
            #expect(hit["cache-status"]?.hasPrefix("rockpool; hit; ttl=") == true, "\(hit["cache-status"] ?? "none")")
            #expect(hit["age"].flatMap { Int($0) } != nil && miss["age"] == nil)
            #expect(hit["etag"] == "\"asset-40000\"" && hit["content-length"] == "40000")
            #expect(world.arrivals("GET", "/v1/assets/40000") == 1)
        }
    }

    @Test(arguments: Door.allCases) func headIsAnsweredFromAStoredGet(_ door: Door) async throws {
        try await World.with { world in
            let online = try await world.send("HEAD", "/v1/assets/1000", via: door)
            #expect(online.status == 200 && online["content-length"] == "1000" && online.body.isEmpty)
            _ = try await world.send("GET", "/v1/assets/1000", via: door)
            let stored = try await world.send("HEAD", "/v1/assets/1000", via: door)
            #expect(stored.status == 200 && stored["content-length"] == "1000")
            #expect(stored["cache-status"]?.hasPrefix("rockpool; hit") == true)
            #expect(world.arrivals("HEAD", "/v1/assets/1000") == 1)
        }
    }

    @Test func aClientsValidatorIsAnsweredFromTheCache() async throws {
        try await World.with { world in
            let first = try await world.send("GET", "/v1/assets/500")
            let etag = try #require(first["etag"])
            let again = try await world.send("GET", "/v1/assets/500", fields: ["If-None-Match: \(etag)"])
            #expect(again.status == 304 && again["etag"] == etag && again.body.isEmpty)
            let other = try await world.send("GET", "/v1/assets/500", fields: ["If-None-Match: \"other\""])
            #expect(other.status == 200 && other.body.count == 500)
            #expect(world.arrivals("GET", "/v1/assets/500") == 1)
        }
    }

    @Test(arguments: Door.allCases) func whatIsStaleIsValidated(_ door: Door) async throws {
        try await World.with { world in
            let first = try await world.send("GET", "/v1/notes/1", via: door)
            let second = try await world.send("GET", "/v1/notes/1", via: door)
            #expect(second.status == 200 && second.text == first.text)
            #expect(second["cache-status"] == "rockpool; fwd=stale; fwd-status=304")
            #expect(world.requests.last?.fields[.ifNoneMatch] == first["etag"])
            world.api.edit(note: "1", with: ["title": "theirs"])
            let changed = try await world.send("GET", "/v1/notes/1", via: door)
            #expect(changed.text.contains("theirs") && changed["etag"] != first["etag"])
            #expect(changed["cache-status"]?.hasPrefix("rockpool; fwd=stale") == true, "\(changed["cache-status"] ?? "none")")
        }
    }

    @Test func variantsAreKeptApart() async throws {
        let upstream = try await RawServer.answering { head in
            let isGerman = head.lowercased().contains("accept-language: de")
            return "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\nContent-Length: 5\r\n\r\n"
                + (isGerman ? "hallo" : "hello")
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: upstream.port))
        for round in 0..<2 {
            for (language, word) in [("de", "hallo"), ("en", "hello")] {
                let reply = try await Curl.send("GET", "http://\(server.gateway)/x", fields: ["Accept-Language: \(language)"])
                #expect(reply.text == word)
                #expect(reply["cache-status"]?.contains("hit") == (round == 1), "\(reply["cache-status"] ?? "")")
            }
        }
        try await #expect(server.stop() == .exit(0))
        await upstream.stop()
    }

    @Test func privateResponsesStayWithTheirIdentity() async throws {
        try await World.with { world in
            let tokens = ["anna", "bert"].map { world.api.issueToken(to: $0) }
            for (user, token) in zip(["anna", "bert"], tokens) {
                let mine = try await world.send("GET", "/v1/me", fields: ["Authorization: Bearer \(token)"])
                #expect(mine.json?["user"]?.string == user)
            }
            await world.goOffline()
            for (user, token) in zip(["anna", "bert"], tokens) {
                let mine = try await world.send("GET", "/v1/me", fields: ["Authorization: Bearer \(token)"])
                #expect(mine.status == 200 && mine.json?["user"]?.string == user)
            }
            expectProblem(try await world.send("GET", "/v1/me"), "offline-miss", 504)
            expectProblem(try await world.send("GET", "/v1/me", fields: ["Authorization: Bearer forged"]), "offline-miss", 504)
        }
    }

    @Test(arguments: ["PUT", "PATCH", "DELETE"]) func writesInvalidate(_ method: String) async throws {
        try await World.with(api: Self.fresh) { world in
            _ = try await world.send("GET", "/v1/notes/1")
            let hit = try await world.send("GET", "/v1/notes/1")
            #expect(hit["cache-status"]?.hasPrefix("rockpool; hit") == true)
            let body = method == "DELETE" ? nil : #"{"title":"new"}"#
            let write = try await world.send(method, "/v1/notes/1", fields: ["Content-Type: application/json"], body: body)
            #expect(write.status == (method == "DELETE" ? 204 : 200))
            let after = try await world.send("GET", "/v1/notes/1")
            #expect(after["cache-status"]?.contains("hit") == false, "\(after["cache-status"] ?? "")")
            #expect(after.status == (method == "DELETE" ? 404 : 200) && (method == "DELETE" || after.text.contains("new")))
        }
    }
}
