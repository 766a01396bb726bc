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
        default: PlayedSite.Said(status: 204)
        }
    }

    /// Subversion sends its questions in chunks.
    @Test func aQuestionWithoutAnAnnouncedLengthIsKept() async throws {
        try await PlayedWorld.with(upstream: Self.routes, Self.play) { world in
            let ask = { (text: String) in
                try await world.send("REPORT", "/pool/", fields: ["Transfer-Encoding: chunked", "Content-Type: text/xml"], body: text)
            }
            let long = String(repeating: "long ", count: 20_000)
            for text in ["<one/>", "<two/>", long] { try await #expect(ask(text).status == 207) }
            try await world.stored("/pool/")
            try await world.turn("offline")
            for text in ["<one/>", "<two/>"] { try await #expect(ask(text).text.contains(text)) }
            try await #expect(ask(long).status == 504)
        }
    }

    /// A calendar program asks for several files by one multiget (RFC 4791 §7.9): away it gets those that were read by any request.
    @Test func aMultigetIsAnsweredFromStoredFiles() async throws {
        let element = { @Sendable (name: String, text: String) in
            "<d:response><d:href>/cal/\(name)</d:href><d:propstat><d:prop><d:getetag>\"\(name)\"</d:getetag>"
                + "<c:calendar-data>\(text)</c:calendar-data></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
        }
        let play: PlayedSite.Play = { asked in
            let name = asked.path.dropFirst("/cal/".count)
            switch asked.method {
            case "REPORT":
                let names = ["a", "b", "c", "d"].filter { asked.body.contains("/cal/\($0)<") }
                let body = names.map { element($0, "BEGIN:\($0)") }.joined()
                return .text(
                    "<d:multistatus xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\">\(body)</d:multistatus>", status: 207,
                    "Content-Type: application/xml")
            case "GET": return .text("BEGIN:\(name)", "ETag: \"\(name)\"", "Content-Type: text/calendar")
            default: return PlayedSite.Said(status: 201, fields: ["ETag: \"\(name)\""])
            }
        }
        try await PlayedWorld.with(upstream: Self.routes, play) { world in
            let multiget = { (names: [String]) in
                let paths = names.map { "<d:href>/cal/\($0)</d:href>" }.joined()
                let body =
                    "<c:calendar-multiget xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"><d:prop><d:getetag/>"
                    + "<c:calendar-data/></d:prop>\(paths)</c:calendar-multiget>"
                return try await world.send("REPORT", "/cal/", fields: ["Depth: 1", "Content-Type: application/xml"], body: body)
            }
            _ = try await world.get("/cal/a")
            try await #expect(multiget(["b"]).status == 207)
            try await #expect(world.send("PUT", "/cal/c", fields: ["Content-Type: text/calendar"], body: "BEGIN:c").status == 201)
            try await world.stored("/cal/a")
            try await world.turn("offline")
            // As the server answered to the PUT before.
            try await #expect(world.send("PUT", "/cal/n", fields: ["Content-Type: text/calendar"], body: "BEGIN:n").status == 201)
            for names in [["a"], ["b"], ["c", "a"], ["n", "b", "c", "a"]] {
                let answer = try await multiget(names)
                #expect(answer.status == 207, "\(names): \(answer.status) \(answer.text)")
                for name in names { #expect(answer.text.contains("BEGIN:\(name)<"), "\(names): \(answer.text)") }
                for name in names where name != "n" {
                    #expect(answer.text.contains("\"\(name)\"") || answer.text.contains("&quot;\(name)"), "\(names): \(answer.text)")
                }
            }
            // One unknown file leaves all unknown: a multiget without it would show that it was deleted.
            try await #expect(multiget(["a", "d"]).status == 504)
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
            let sent = world.site.asked.last { $0.method == "MOVE" }?["destination"]
            #expect(moved.status == 204 && sent == world.url("/f2"), "\(sent ?? "none")")
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
