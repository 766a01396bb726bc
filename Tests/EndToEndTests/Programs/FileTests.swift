// Files written, moved and deleted while the server is away are read back and listed as they were left
// (docs/outbox.md#files-and-collections).
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized, .timeLimit(.minutes(2))) struct FileTests {
    private static let routes: JSONValue = [
        "routes": [["match": "PROPFIND /**", "cache": "body"], ["match": "OPTIONS /**", "cache": "body"]]
    ]

    private static func listed(_ path: String) -> String {
        "<d:response><d:href>\(path)</d:href><d:propstat><d:prop><d:getetag>\"1\"</d:getetag></d:prop></d:propstat></d:response>"
    }

    private static func play(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        switch asked.method {
        case "PROPFIND":
            .text(
                "<d:multistatus xmlns:d=\"DAV:\">\(listed("/dir/"))\(listed("/dir/a"))\(listed("/dir/b"))</d:multistatus>", status: 207,
                "Content-Type: application/xml")
        case "GET": .text("server", "ETag: \"1\"", "Cache-Control: max-age=60", "Content-Type: text/plain")
        case "OPTIONS": .text("", "DAV: 1, 2")
        default: PlayedSite.Said(status: 201, fields: ["ETag: \"2\""])
        }
    }

    private func list(_ world: PlayedWorld, _ path: String = "/dir/", depth: String = "1") async throws -> Curl {
        try await world.send("PROPFIND", path, fields: ["Depth: \(depth)"])
    }

    @Test func aFileIsReadBackAsItWasWritten() async throws {
        try await PlayedWorld.with({ Self.play($0) }) { world in
            _ = try await world.get("/dir/a")
            try await world.stored("/dir/a")
            try await world.turn("offline")
            let put = try await world.send("PUT", "/dir/a", fields: ["Content-Type: text/plain"], body: "BEGIN:VCALENDAR")
            #expect(put.status == 202 && put["etag"]?.hasPrefix("\"loc-") == true)
            let read = try await world.get("/dir/a")
            #expect(read.status == 200 && read.text == "BEGIN:VCALENDAR" && read["content-type"] == "text/plain")
            #expect(read["etag"] == put["etag"] && read["rockpool-state"] == "pending")
            try await #expect(world.get("/dir/a", ["Range: bytes=0-4"]).text == "BEGIN")
            try await #expect(world.get("/dir/a", ["If-None-Match: \(put["etag"] ?? "")"]).status == 304)
            // The next version is conditional on the one before; at the server it names the server's own tag.
            let next = try await world.send(
                "PUT", "/dir/a", fields: ["If-Match: \(put["etag"] ?? "")", "If: (<opaquelocktoken:1>)"], body: "2")
            #expect(next.status == 202)
            try await #expect(world.send("DELETE", "/dir/c").status == 202)
            try await #expect(world.get("/dir/c").status == 404)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            let sent = world.site.asked.filter { $0.method == "PUT" }
            #expect(sent.map(\.body) == ["BEGIN:VCALENDAR", "2"] && sent.last?["if-match"] == "\"2\"")
            #expect(sent.last?["if"] == "(<opaquelocktoken:1>)")
        }
    }

    /// Programs that take 202 for a failure are answered as their server would: 201 or 204.
    @Test func queuedFilesAreAnsweredAsByAServerOfFiles() async throws {
        let upstream: JSONValue = ["routes": [["match": "/**", "offline_response": "optimistic"]]]
        try await PlayedWorld.with(upstream: upstream, { Self.play($0) }) { world in
            try await world.turn("offline")
            let destination = "Destination: http://\(world.server.gateway)/dir/c"
            let writes: [(method: String, path: String, fields: [String], status: Int)] = [
                ("PUT", "/dir/a", [], 201), ("PUT", "/dir/a", ["If-Match: *"], 204), ("MOVE", "/dir/a", [destination], 201),
                ("MKCOL", "/dir/sub", [], 201), ("DELETE", "/dir/c", [], 204), ("PUT", "/dir/d", ["Prefer: respond-async"], 202),
            ]
            for (method, path, fields, status) in writes {
                let answer = try await world.send(method, path, fields: fields, body: method == "PUT" ? "x" : nil)
                #expect(answer.status == status && answer["rockpool-state"] == "pending", "\(method) \(path): \(answer.status)")
                #expect(status == 202 || answer["location"] == nil && answer.body.isEmpty)
            }
            // A write to anything else is answered as ever.
            try await #expect(world.send("POST", "/dir/a", body: "x").status == 202)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
        }
    }

    @Test func listingsShowWhatWaits() async throws {
        try await PlayedWorld.with(upstream: Self.routes, { Self.play($0) }) { world in
            try await #expect(list(world).status == 207)
            _ = try await world.get("/dir/a")
            try await #expect(world.send("OPTIONS", "/dir/")["dav"] == "1, 2")
            try await eventually("both are stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/dir/"))").json?["items"]?.array?.count == 3
            }
            try await world.turn("offline")
            try await #expect(world.send("OPTIONS", "/dir/")["dav"] == "1, 2")
            let put = try await world.send("PUT", "/dir/new%20file", fields: ["Content-Type: text/plain"], body: "four")
            try await #expect(world.send("DELETE", "/dir/b").status == 202)
            let destination = "Destination: http://\(world.server.gateway)/dir/moved"
            try await #expect(world.send("MOVE", "/dir/a", fields: [destination]).status == 202)
            try await #expect(world.send("MKCOL", "/dir/sub").status == 202)
            let shown = try await list(world).text
            for path in ["/dir/", "/dir/new%20file", "/dir/moved", "/dir/sub/"] {
                #expect(shown.contains("href>\(path)</"), "\(path): \(shown)")
            }
            for path in ["/dir/a", "/dir/b"] { #expect(!shown.contains("href>\(path)</"), "\(path): \(shown)") }
            #expect(shown.contains("getcontentlength>4<") && shown.contains(put["etag"] ?? "none"), "\(shown)")
            try await #expect(world.get("/dir/moved").text == "server")
            try await #expect(world.get("/dir/a").status == 404)
            let one = try await list(world, "/dir/new%20file", depth: "0")
            #expect(one.status == 207 && one.text.contains("getcontentlength>4<"))
            try await #expect(list(world, "/dir/sub/").text.contains("collection"))
            try await #expect(list(world, "/dir/b", depth: "0").status == 404)
        }
    }

    /// What is within a new collection is sent after it, whatever the upstream's order of lanes.
    @Test func collectionsAreMadeBeforeTheirFiles() async throws {
        try await PlayedWorld.with({ Self.play($0) }) { world in
            try await world.turn("offline")
            _ = try await world.send("MKCOL", "/one")
            for number in 0..<6 {
                _ = try await world.send("PUT", "/one/\(number)", fields: ["Content-Type: text/plain"], body: "\(number)")
            }
            _ = try await world.send("MOVE", "/one", fields: ["Destination: http://\(world.server.gateway)/two"])
            _ = try await world.send("PUT", "/two/0", fields: ["Content-Type: text/plain"], body: "late")
            try await #expect(world.get("/two/0").text == "late")
            try await #expect(world.get("/two/1").text == "1")
            try await #expect(world.get("/one/1").status == 404)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            let sent = world.site.asked.filter { !["GET", "HEAD"].contains($0.method) }.map { "\($0.method) \($0.path)" }
            #expect(sent.first == "MKCOL /one" && Array(sent.suffix(2)) == ["MOVE /one", "PUT /two/0"] && sent.count == 9, "\(sent)")
        }
    }

    /// A collection whose parent is not there is refused as the server would, so that its client makes the parent; elsewhere it waits.
    @Test func aCollectionNeedsItsParent() async throws {
        let play: PlayedSite.Play = { $0.path.hasPrefix("/none") ? .text("none", status: 404) : Self.play($0) }
        try await PlayedWorld.with(upstream: Self.routes, play) { world in
            try await #expect(list(world, "/none").status == 404)
            try await #expect(list(world, "/shown/a/").status == 207)
            try await world.stored("/shown/a/")
            try await world.turn("offline")
            for (path, status) in [
                ("/none/a/b/", 409), ("/unknown/a/", 202), ("/tree/", 202), ("/tree/a/b/", 409), ("/tree/a/", 202), ("/tree/a/b/", 202),
                ("/shown/", 202), ("/shown/a/b/", 202),
            ] {
                let made = try await world.send("MKCOL", path)
                #expect(made.status == status, "\(path)")
            }
        }
    }

    /// What is copied or removed is sent after what its client wrote before, and before what it wrote later, in whatever lane.
    @Test func copiesAndRemovalsKeepTheirOrder() async throws {
        let routes: JSONValue = ["routes": [["match": "/b/**", "kind": "s3"]]]
        try await PlayedWorld.with(upstream: routes, { Self.play($0) }) { world in
            _ = try await world.get("/b/src0")
            try await world.stored("/b/src0")
            try await world.turn("offline")
            for number in 0..<8 {
                let source = ["X-Amz-Copy-Source: b/src\(number)"]
                try await #expect(world.send("PUT", "/b/dst\(number)", fields: source).status == 200)
                try await #expect(world.send("DELETE", "/b/src\(number)").status == 204)
            }
            try await #expect(world.get("/b/dst0").text == "server")
            try await #expect(world.send("PUT", "/b/again", fields: ["X-Amz-Copy-Source: b/src0"]).status == 404)
            for number in 0..<4 { _ = try await world.send("PUT", "/dir/\(number)", body: "\(number)") }
            _ = try await world.send("DELETE", "/dir/")
            _ = try await world.send("PUT", "/dir/later", body: "later")
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            let sent = world.site.asked.filter { ["PUT", "DELETE"].contains($0.method) }.map { "\($0.method) \($0.path)" }
            for number in 0..<8 {
                let (copy, removal) = (sent.firstIndex(of: "PUT /b/dst\(number)"), sent.firstIndex(of: "DELETE /b/src\(number)"))
                #expect(try #require(copy) < #require(removal), "\(sent)")
            }
            let below = sent.filter { $0.contains("/dir/") }
            #expect(below.count == 6 && Array(below.suffix(2)) == ["DELETE /dir/", "PUT /dir/later"], "\(sent)")
        }
    }

    /// rclone makes a nested collection first, and its parents after a 409.
    @Test func aCollectionWhoseParentIsNotListedIsMadeAfterIt() async throws {
        let play: PlayedSite.Play = { asked in
            guard asked.method == "PROPFIND", asked.path != "/dir/" else { return Self.play(asked) }
            let listing = "<d:multistatus xmlns:d=\"DAV:\">\(Self.listed(asked.path))</d:multistatus>"
            return .text(listing, status: 207, "Content-Type: application/xml")
        }
        try await PlayedWorld.with(upstream: Self.routes, play) { world in
            for (path, depth) in [("/dir/", "1"), ("/empty/", "1"), ("/alone/", "0")] {
                try await #expect(list(world, path, depth: depth).status == 207)
            }
            try await eventually("the listings are stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/"))").json?["items"]?.array?.count == 3
            }
            try await world.turn("offline")
            for (path, status) in [
                ("/dir/new/sub/", 409), ("/dir/new/", 202), ("/dir/new/sub/", 202), ("/dir/b/sub/", 202), ("/x/y/", 202),
                ("/empty/new/sub/", 409), ("/alone/new/sub/", 202),
            ] {
                try await #expect(world.send("MKCOL", path).status == status, "\(path)")
            }
        }
    }

    /// What was done online is seen when the server is away afterwards.
    @Test func aMoveOnlineIsSeenAway() async throws {
        try await PlayedWorld.with({ Self.play($0) }) { world in
            _ = try await world.get("/f1")
            try await world.stored("/f1")
            try await #expect(world.send("MOVE", "/f1", fields: ["Destination: \(world.url("/f2"))"]).status == 201)
            try await world.turn("offline")
            try await #expect(world.get("/f1").status == 404)
            let moved = try await world.get("/f2")
            #expect(moved.status == 200 && moved.text == "server")
        }
    }

    @Test func aBucketIsListedWithWhatWaits() async throws {
        let list =
            "<ListBucketResult><Name>b</Name><Prefix></Prefix><KeyCount>2</KeyCount><IsTruncated>false</IsTruncated>"
            + "<Contents><Key>a</Key><Size>1</Size></Contents><Contents><Key>c</Key><Size>1</Size></Contents></ListBucketResult>"
        let routes: JSONValue = ["routes": [["match": "/b/**", "kind": "s3"], ["match": "/b", "kind": "s3"]]]
        try await PlayedWorld.with(upstream: routes, { _ in .text(list, "Content-Type: application/xml") }) { world in
            let read = { try await world.get("/b?list-type=2&prefix=&delimiter=%2F&encoding-type=url") }
            _ = try await read()
            try await eventually("the list is stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/b"))").json?["items"]?.array?.count == 1
            }
            try await world.turn("offline")
            try await #expect(read().text == list)
            for (method, path) in [("PUT", "/b/b"), ("PUT", "/b/d/e"), ("DELETE", "/b/c")] {
                _ = try await world.send(method, path, body: method == "PUT" ? "xyz" : nil)
            }
            let shown = try await read().text
            #expect(
                shown.contains("<KeyCount>3</KeyCount>") && shown.contains("<Key>b</Key>") && shown.contains("<Size>3</Size>"), "\(shown)")
            #expect(shown.contains("<Prefix>d/</Prefix>") && !shown.contains("<Key>c</Key>"), "\(shown)")
        }
    }

    /// An object that was put online, and after the list was read, is there away: listed, and with its metadata.
    @Test func anObjectPutOnlineIsThereAway() async throws {
        let list =
            "<ListBucketResult><Name>b</Name><KeyCount>1</KeyCount><Contents><Key>a</Key><Size>1</Size></Contents></ListBucketResult>"
        let routes: JSONValue = ["routes": [["match": "/b/**", "kind": "s3"], ["match": "/b", "kind": "s3"]]]
        let play: PlayedSite.Play = { asked in
            asked.method == "PUT" ? .text("", "ETag: \"2\"") : .text(list, "Content-Type: application/xml")
        }
        try await PlayedWorld.with(upstream: routes, play) { world in
            let read = { try await world.get("/b?list-type=2&prefix=") }
            _ = try await read()
            try await eventually("the list is stored") {
                try await world.server.get("/v1/cache?prefix=\(world.url("/b"))").json?["items"]?.array?.count == 1
            }
            let fields = ["x-amz-meta-mtime: 123", "Content-Type: text/x-old", "Content-Language: de"]
            try await #expect(world.send("PUT", "/b/new", fields: fields, body: "old").status == 200)
            let chunked = [
                "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "Content-Encoding: aws-chunked", "x-amz-meta-mtime: 124",
                "Content-Type:",
            ]
            try await #expect(world.send("PUT", "/b/new", fields: chunked, body: "3\r\nnew\r\n0\r\n\r\n").status == 200)
            try await world.stored("/b/new")
            try await world.turn("offline")
            try await #expect(read().text.contains("<Key>new</Key>"))
            let object = try await world.get("/b/new")
            #expect(object.text == "new" && object["x-amz-meta-mtime"] == "124" && object["etag"] == "\"2\"", "\(object.text)")
            #expect(object["content-language"] == nil && object["content-encoding"] == nil)
            let copy = try await world.send("PUT", "/b/copy", fields: ["x-amz-copy-source: /b/new"])
            #expect(copy.status == 200 && copy["content-type"] == "application/xml")
            #expect(copy.text.contains("<CopyObjectResult><LastModified>") && copy.text.contains("<ETag>\"loc-"), "\(copy.text)")
        }
    }

    /// The server has carried out a queued move, and its answer is still on the way: the file is where it was moved to.
    @Test func aMoveUnderWayHidesNothing() async throws {
        let isMoved = Mutex(false)
        let play: PlayedSite.Play = { asked in
            if asked.method == "MOVE" {
                isMoved.withLock { $0 = true }
                Thread.sleep(forTimeInterval: 2)
                return PlayedSite.Said(status: 201)
            }
            let name = isMoved.withLock { $0 ? "/dir/moved" : "/dir/a" }
            if asked.path != name { return .text("none", status: 404) }
            let listing = "<d:multistatus xmlns:d=\"DAV:\">\(Self.listed(name))</d:multistatus>"
            return asked.method == "PROPFIND" ? .text(listing, status: 207, "Content-Type: application/xml") : Self.play(asked)
        }
        try await PlayedWorld.with(upstream: Self.routes, play) { world in
            try await #expect(list(world, "/dir/a", depth: "0").status == 207)
            try await world.turn("offline")
            let move = ["Destination: http://\(world.server.gateway)/dir/moved"]
            try await #expect(world.send("MOVE", "/dir/a", fields: move).status == 202)
            try await world.turn("auto")
            try await eventually("the move at the server") { isMoved.withLock { $0 } }
            let shown = try await list(world, "/dir/moved", depth: "0")
            #expect(shown.status == 207 && shown.text.contains("/dir/moved"), "\(shown.status) \(shown.text)")
            let read = try await world.get("/dir/moved")
            #expect(read.status == 200 && read.text == "server", "\(read.status) \(read.text)")
            try await #expect(world.get("/dir/a").status == 404)
            try await world.server.outboxIsEmpty()
        }
    }
}
