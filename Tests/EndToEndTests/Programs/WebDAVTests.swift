// WebDAV: what a MOVE or a DELETE changes is not served from the store, and listings are there offline (RFC 4918).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct WebDAVTests {
    private static let routes: JSONValue = [
        "routes": [["match": "PROPFIND /**", "cache": "body"], ["match": "REPORT /**", "cache": "body"]]
    ]

    private static func play(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        switch asked.method {
        case "PROPFIND", "REPORT":
            .text("<multistatus>\(asked["depth"] ?? "")\(asked.body)</multistatus>", status: 207, "Content-Type: application/xml")
        case "GET": .text("bytes", "Cache-Control: max-age=86400", "Content-Type: text/plain")
        default: PlayedSite.Said(status: 204, fields: ["X-Destination: \(asked["destination"] ?? "")"])
        }
    }

    @Test func aMoveEndsTheFreshnessOfSourceAndDestination() async throws {
        try await PlayedWorld.with(upstream: Self.routes, { Self.play($0) }) { world in
            for path in ["/f1", "/f2", "/dir/a", "/dir/sub/b", "/dirt"] {
                _ = try await world.get(path)
                try await world.stored(path)
            }
            let destination = "Destination: http://\(world.server.gateway)/f2"
            let moved = try await world.send("MOVE", "/f1", fields: [destination])
            #expect(moved.status == 204 && moved["x-destination"] == world.url("/f2"), "\(moved["x-destination"] ?? "none")")
            try await #expect(world.send("DELETE", "/dir/").status == 204)
            for path in ["/f1", "/f2", "/dir/a", "/dir/sub/b"] {
                _ = try await world.get(path)
                #expect(world.site.count(path, "GET") == 2, "\(path)")
            }
            _ = try await world.get("/dirt")
            #expect(world.site.count("/dirt") == 1)
        }
    }

    @Test func listingsAreThereOffline() async throws {
        try await PlayedWorld.with(upstream: Self.routes, { Self.play($0) }) { world in
            let list = { (depth: String) in
                try await world.send("PROPFIND", "/dir/", fields: ["Depth: \(depth)", "Content-Type: application/xml"], body: "<allprop/>")
            }
            let (one, zero) = (try await list("1"), try await list("0"))
            #expect(one.status == 207 && zero.status == 207 && one.body != zero.body)
            try await eventually("both listings are stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/dir/"))").json?["items"]?.array?.count == 2
            }
            try await world.turn("offline")
            try await #expect(list("1").body == one.body)
            try await #expect(list("0").body == zero.body)
            let other = try await world.send("REPORT", "/dir/", fields: ["Content-Type: application/xml"], body: "<other/>")
            #expect(other.status == 504)
        }
    }
}
