// What single requests of real clients get while the server is away: HEAD, a language, a tag without quotes.
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct AwayRequestTests {
    /// The head of a large file, and of a URL that knows HEAD only, is answered as it was, with the length that was announced.
    @Test func headSaysWhatItSaid() async throws {
        let play: PlayedSite.Play = { asked in
            guard asked.method == "HEAD" else { return .text("no", status: 405) }
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\nETag: \"1\"\r\nContent-Type: application/zip\r\n\r\n"
            return PlayedSite.Said(wire: Array(head.utf8))
        }
        try await PlayedWorld.with(play) { world in
            try await #expect(world.send("HEAD", "/big.zip").status == 200)
            try await world.stored("/big.zip")
            try await world.turn("offline")
            let (gateway, proxy) = (try await world.send("HEAD", "/big.zip"), world.server.proxy)
            for head in [gateway, try await Curl.send("HEAD", world.url("/big.zip"), proxy: proxy)] {
                #expect(head.status == 200 && head["content-length"] == "5000000000" && head["etag"] == "\"1\"", "\(head.heads)")
                #expect(head["content-type"] == "application/zip" && head["cache-status"]?.contains("detail=offline") == true)
            }
            try await #expect(world.get("/big.zip").status == 504)
            try await #expect(world.send("HEAD", "/other.zip").status == 504)
        }
    }

    @Test func theBestStoredLanguageIsServed() async throws {
        let play: PlayedSite.Play = { asked in
            let language = asked["accept-language"].map { String($0.prefix(2)) } ?? "en"
            return .text("in " + language, "Vary: Accept-Language", "Content-Language: \(language)", "Content-Type: text/plain")
        }
        try await PlayedWorld.with(play) { world in
            for language in ["de", "fr", "en"] { _ = try await world.get("/a", ["Accept-Language: \(language)"]) }
            try await eventually("all are stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/a"))").json?["items"]?.array?.count == 3
            }
            try await world.turn("offline")
            for (wish, language) in [("it, de;q=0.8, fr;q=0.5", "de"), ("de;q=0.1, fr-CH;q=0.9", "fr"), ("de-AT, en;q=0.9", "de")] {
                let reply = try await world.get("/a", ["Accept-Language: \(wish)"])
                #expect(reply.text == "in " + language && reply["cache-status"]?.contains("detail=variant") == true, "\(wish)")
            }
            try await #expect(world.get("/a", ["Accept-Language: it"]).status == 200)
        }
    }

    /// A client of Eve sends the member `_etag` back as `If-Match`, without quotes, away as online.
    @Test func aTagIsSentBackAsTheBodySaysIt() async throws {
        let upstream: JSONValue = [
            "resources": [["collection": "/people", "item": "/people/{id}", "id": "/_id", "version": "/_etag", "items": "/_items"]]
        ]
        let versions = Versions()
        let play: PlayedSite.Play = { asked in
            if asked.method == "PATCH" {
                let named = asked["if-match"]
                guard named == versions.current else { return .text("{}", status: 412, "Content-Type: application/json") }
                versions.next()
            }
            let version = versions.current
            return .text(
                #"{"_id":"1","name":"a","_etag":"\#(version)"}"#, "Content-Type: application/json", "ETag: \"\(version)\"")
        }
        try await PlayedWorld.with(upstream: upstream, play) { world in
            var person = try await world.get("/people/1")
            try await world.stored("/people/1")
            try await world.turn("offline")
            for name in ["b", "c", "d"] {
                let tag = try #require(person.json?["_etag"]?.string)
                let patch = try await world.send(
                    "PATCH", "/people/1", fields: ["If-Match: \(tag)", "Content-Type: application/json"], body: #"{"name":"\#(name)"}"#)
                #expect(patch.status == 202, "\(patch.text)")
                person = try await world.get("/people/1")
                #expect(person.json?["name"]?.string == name && person.json?["_etag"]?.string?.hasPrefix("loc-") == true)
            }
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            let sent = world.site.asked.filter { $0.method == "PATCH" }.map { $0["if-match"] }
            #expect(sent == ["v1", "v2", "v3"])
            try await #expect(world.get("/people/1").json?["_etag"]?.string == "v4")
        }
    }
}

/// The version of the one person.
private final class Versions: Sendable {
    private let count = Mutex(1)

    var current: String { "v\(count.withLock { $0 })" }

    func next() { count.withLock { $0 += 1 } }
}
