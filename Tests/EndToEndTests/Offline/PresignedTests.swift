// Objects at presigned URLs, while their store is there and while it is away (docs/caching.md#presigned-urls).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct PresignedTests {
    /// A store that accepts signatures which begin with `good`.
    private static let play: PlayedSite.Play = { asked in
        guard asked.path.contains("Signature=good") else { return .text("who?", status: 403) }
        if asked["if-none-match"] == "\"1\"" { return PlayedSite.Said(status: 304, fields: ["ETag: \"1\""]) }
        return .text("chart", "ETag: \"1\"", "Cache-Control: public, max-age=600")
    }

    private func signed(_ path: String, _ signature: String, until end: Date = Date.now + 3600) -> String {
        "\(path)?response-content-type=image%2Fpng&AWSAccessKeyId=AK&Expires=\(Int(end.timeIntervalSince1970))&Signature=\(signature)"
    }

    private func requests(_ world: PlayedWorld) -> Int { world.site.asked.count }

    @Test func aCopyIsForThoseWhoseSignatureWasAccepted() async throws {
        try await PlayedWorld.with(Self.play) { world in
            let (path, end) = ("/box/chart.png", Date.now + 3600)
            let ended = signed(path, "good-ended", until: Date.now - 60)
            for url in [signed(path, "good1", until: end), signed(path, "good2", until: end), ended] {
                try await #expect(world.get(url).text == "chart")
                try await world.stored(path + "?response-content-type=image%2Fpng")
            }
            let revalidated = world.site.asked.count { $0["if-none-match"] != nil }
            #expect(revalidated == 2, "one copy for all")
            try await #expect(world.get(signed(path, "bad", until: end)).status == 403)
            try await #expect(world.get(path + "?response-content-type=image%2Fpng").status == 403)
            try await eventually("the signatures are kept") {
                let items = try await world.server.get("/v1/cache?prefix=\(world.url(path))").json?["items"]?.array
                return items?.count ?? 0 >= 4
            }
            let before = requests(world)
            try await #expect(world.get(signed(path, "good1", until: end)).text == "chart")
            #expect(requests(world) == before, "fresh, and accepted")
            try await #expect(world.get(ended).text == "chart")
            #expect(requests(world) == before + 1, "its time has ended")
            try await world.turn("offline")
            for url in [signed(path, "good1", until: end), signed(path, "good2", until: end), ended] {
                try await #expect(world.get(url).text == "chart")
            }
            for url in [signed(path, "bad", until: end), signed(path, "good3", until: end), path + "?response-content-type=image%2Fpng"] {
                try await #expect(world.get(url, ["Cache-Control: max-stale"]).status == 504, "\(url)")
            }
            #expect(requests(world) == before + 1)
        }
    }

    @Test func aWriteIsRefusedWhereItsURLEndsTooSoon() async throws {
        try await PlayedWorld.with(Self.play) { world in
            try await world.turn("offline")
            let put = { (url: String, fields: [String]) in
                try await world.send("PUT", url, fields: fields + ["Content-Type: application/json"], body: "{}")
            }
            let short = signed("/box/a", "good", until: Date.now + 120)
            let refused = try await put(short, [])
            #expect(
                refused.status == 503 && refused.text.contains("is signed until") && refused.text.contains("not-queueable"),
                "\(refused.text)")
            try await #expect(put(short, ["Rockpool-Expires: 60"]).status == 202)
            let long = try await put(signed("/box/b", "good"), [])
            #expect(long.status == 202 && long["rockpool-expires"] != nil, "\(long.status)")
            try await #expect(world.server.operations().count == 2)
            try await world.turn("auto")
            try await eventually("they are delivered") { world.site.asked.count { $0.method == "PUT" } == 2 }
        }
    }
}
