// Clients with their own copies: a conditional, HEAD or range request on a cold cache stores the representation for offline use (RFC 9110
// §13, §14; RFC 9111 §4.3).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct WarmClientTests {
    private static let bytes: [UInt8] = (0..<2000).map { UInt8($0 % 251) }
    private static let modified = "Mon, 01 Jan 2024 00:00:00 GMT"

    /// A file server with conditions, ranges and HEAD.
    private static func file(_ bytes: [UInt8] = bytes, tag: String = "v1", cacheControl: String = "max-age=600") -> PlayedSite.Play {
        { asked in
            var fields = ["Cache-Control: \(cacheControl)", "ETag: \"\(tag)\"", "Last-Modified: \(Self.modified)"]
            fields.append("Content-Type: image/png")
            let isKnown = asked["if-none-match"].map { $0 == "\"\(tag)\"" } ?? (asked["if-modified-since"] == Self.modified)
            if isKnown { return PlayedSite.Said(status: 304, fields: fields) }
            let isSame = asked["if-range"].map { $0 == "\"\(tag)\"" } ?? true
            guard asked.method == "GET", isSame, let range = asked["range"], range.hasPrefix("bytes=") else {
                return PlayedSite.Said(fields: fields, body: bytes)
            }
            let ends = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
            guard ends.count == 2, let first = ends[0], first < bytes.count else { return PlayedSite.Said(status: 416) }
            let last = min(ends[1] ?? bytes.count - 1, bytes.count - 1)
            fields.append("Content-Range: bytes \(first)-\(last)/\(bytes.count)")
            return PlayedSite.Said(status: 206, fields: fields, body: Array(bytes[first...last]))
        }
    }

    /// Waits until the complete body is stored, then reads it offline.
    private func expectWholeOffline(_ world: PlayedWorld) async throws {
        try await eventually("the whole is stored") {
            let reply = try await world.get("/item", ["Cache-Control: only-if-cached"])
            return reply.status == 200 && reply.body == Self.bytes
        }
        try await world.turn("offline")
        let whole = try await world.get("/item")
        #expect(whole.status == 200 && whole.exit == 0 && whole.body == Self.bytes, "\(whole.heads) \(whole.body.count) bytes")
        #expect(whole["etag"] == "\"v1\"")
    }

    // MARK: conditions

    @Test(arguments: [
        ("If-None-Match: \"v1\"", 304), ("If-None-Match: \"old\"", 200),
        ("If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT", 304), ("If-Modified-Since: Sun, 01 Jan 2023 00:00:00 GMT", 200),
    ])
    func aConditionOnAColdCacheFillsIt(_ condition: String, _ status: Int) async throws {
        try await PlayedWorld.with(Self.file()) { world in
            let reply = try await world.get("/item", [condition])
            #expect(reply.status == status && reply.exit == 0, "\(reply.heads)")
            #expect(reply.body == (status == 304 ? [] : Self.bytes) && reply["etag"] == "\"v1\"", "\(reply.body.count) bytes")
            try await expectWholeOffline(world)
        }
    }

    // MARK: HEAD and ranges

    @Test func aHeadOnAColdCacheFillsIt() async throws {
        try await PlayedWorld.with(Self.file()) { world in
            let reply = try await world.send("HEAD", "/item")
            #expect(reply.status == 200 && reply["content-length"] == "2000" && reply["etag"] == "\"v1\"", "\(reply.heads)")
            try await expectWholeOffline(world)
        }
    }

    @Test func aRangeOnAColdCacheFillsIt() async throws {
        try await PlayedWorld.with(Self.file()) { world in
            let reply = try await world.get("/item", options: ["-r", "10-19"])
            #expect(reply.status == 206 && reply["content-range"] == "bytes 10-19/2000", "\(reply.heads)")
            #expect(reply.body == Array(Self.bytes[10...19]))
            try await expectWholeOffline(world)
        }
    }

    /// A large body is fetched only for a client that reads it, not in the background after a HEAD or range request.
    @Test(arguments: ["HEAD", "GET"]) func whatIsLargeIsNotFetchedForAPart(_ method: String) async throws {
        let large = [UInt8](repeating: 0x61, count: 6_000_000)
        try await PlayedWorld.with(Self.file(large)) { world in
            let reply = try await world.send(method, "/large", options: method == "GET" ? ["-r", "0-9"] : [])
            #expect(reply.status == (method == "GET" ? 206 : 200) && reply.exit == 0, "\(reply.heads)")
            try await Task.sleep(for: .milliseconds(500))
            #expect(world.site.sent < 100_000, "\(world.site.sent) bytes sent")
        }
    }

    @Test func whatMayNotBeStoredIsNotFetchedForAHead() async throws {
        try await PlayedWorld.with(Self.file(cacheControl: "no-store")) { world in
            try await #expect(world.send("HEAD", "/item").status == 200)
            try await Task.sleep(for: .milliseconds(500))
            #expect(world.site.count("/item", "HEAD") == 1 && world.site.count("/item", "GET") == 0)
        }
    }

    /// A stale copy is revalidated for a range request and has been replaced: the client gets the range of the new version.
    @Test func aRangeOfAStaleCopyIsOneOfTheNewVersion() async throws {
        let new: [UInt8] = (0..<1500).map { UInt8(250 - $0 % 251) }
        try await PlayedWorld.with(Self.file(cacheControl: "max-age=0")) { world in
            try await #expect(world.get("/item").body == Self.bytes)
            try await world.stored("/item")
            world.site.play(Self.file(new, tag: "v2", cacheControl: "max-age=0"))
            let part = try await world.get("/item", options: ["-r", "0-4"])
            #expect(part.status == 206 && part["content-range"] == "bytes 0-4/1500", "\(part.heads)")
            #expect(part.body == Array(new[..<5]) && part["etag"] == "\"v2\"", "\(part.body.count) bytes")
        }
    }
}
