// Codings and languages: a stored gzip copy serves every client while the upstream is offline, and no client receives a coding that it does
// not accept (RFC 9110 §8.4, §12.5.3, §12.5.4; RFC 9111 §4.1; docs/reference/headers.md#cache-status `detail=variant`).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct CodingTests {
    private static let text = """
        The tide goes out, and the rock pool keeps its life: every reader finds what was there before.
        The tide goes out, and the rock pool keeps its life: no reader is given what it cannot read.
        The tide goes out, and the rock pool keeps its life: and nobody waits.

        """
    /// `text` as compressed by Python's `gzip.compress(text, mtime=0)`.
    private static let zipped: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x9D, 0x8E, 0xD1, 0x0D, 0x83, 0x40, 0x0C, 0x43, 0xFF, 0x99, 0xC2,
        0x03, 0x54, 0x0C, 0xD0, 0x39, 0x58, 0xE0, 0xE0, 0x7C, 0x10, 0x81, 0x12, 0x74, 0x49, 0x41, 0x6C, 0x5F, 0x28, 0xEA, 0x02, 0xFC,
        0x3E, 0xDB, 0x4F, 0xEE, 0x26, 0x22, 0x24, 0x13, 0xA3, 0xD1, 0x61, 0x9F, 0x78, 0x21, 0x69, 0x46, 0x9C, 0xB8, 0xDA, 0x30, 0x63,
        0x35, 0x5B, 0x30, 0x93, 0xAB, 0x43, 0xC2, 0xB1, 0x48, 0xE1, 0x1B, 0xDC, 0x58, 0x0F, 0x54, 0xA6, 0xCC, 0x8A, 0x22, 0x9A, 0x1D,
        0xFB, 0x94, 0x02, 0x7B, 0xF2, 0x6B, 0x59, 0x89, 0x9E, 0xC5, 0x2A, 0xDB, 0xA6, 0x7B, 0xA2, 0x57, 0xFB, 0xBB, 0xC5, 0x31, 0xCA,
        0x46, 0xBD, 0xF5, 0x12, 0x18, 0x92, 0xAA, 0xC5, 0x2F, 0x7E, 0x28, 0xBF, 0x1A, 0x6A, 0xBD, 0xE5, 0xE3, 0xBC, 0x7B, 0xE2, 0xB6,
        0xF9, 0x02, 0x22, 0x63, 0x9B, 0x37, 0x03, 0x01, 0x00, 0x00,
    ]
    private static let gzip = "Accept-Encoding: gzip"
    private static let fields = ["Cache-Control: max-age=600", "Content-Type: text/plain", "ETag: \"v1\"", "Vary: Accept-Encoding"]

    /// An origin that sends gzip to clients that accept it, and the plain text to all others.
    private static func negotiating(_ fields: [String] = fields, coded: [UInt8] = zipped) -> PlayedSite.Play {
        { asked in
            guard asked["accept-encoding"]?.contains("gzip") == true else {
                return PlayedSite.Said(fields: fields, body: Array(Self.text.utf8))
            }
            return PlayedSite.Said(fields: fields + ["Content-Encoding: gzip"], body: coded)
        }
    }

    /// Runs `body` offline, with the stored copy of a client that accepted gzip.
    private func withCodedCopy(_ body: (PlayedWorld) async throws -> Void) async throws {
        try await PlayedWorld.with(Self.negotiating()) { world in
            let online = try await world.get("/page", [Self.gzip])
            #expect(online.body == Self.zipped && online["content-encoding"] == "gzip")
            try await world.stored("/page")
            try await world.turn("offline")
            try await body(world)
        }
    }

    /// Expects the decoded text, without any field of the coded representation.
    private func expectDecoded(_ reply: Curl, _ comment: Comment = "", _ location: SourceLocation = #_sourceLocation) {
        #expect(reply.status == 200 && reply.exit == 0 && reply.text == Self.text, "\(reply.exit) \(reply.heads)", sourceLocation: location)
        #expect(reply["content-encoding"] == nil && reply["etag"] == "W/\"v1\"", comment, sourceLocation: location)
        #expect(reply["vary"]?.lowercased().contains("accept-encoding") == true, comment, sourceLocation: location)
        let length = reply["content-length"]
        #expect(length == nil || length == "\(Self.text.utf8.count)", comment, sourceLocation: location)
        #expect(reply["cache-status"]?.contains("detail=variant") == true, comment, sourceLocation: location)
    }

    // MARK: a copy in gzip, offline

    @Test func whoDoesNotTakeGzipGetsTheText() async throws {
        try await withCodedCopy { world in
            for fields in [[], ["Accept-Encoding: br"], ["Accept-Encoding: identity"], ["Accept-Encoding: gzip;q=0"]] {
                expectDecoded(try await world.get("/page", fields), "\(fields)")
            }
            expectDecoded(try await world.get("/page", options: ["--http1.0"]), "HTTP/1.0")
        }
    }

    @Test func whoTakesGzipGetsTheSameText() async throws {
        try await withCodedCopy { world in
            let reply = try await world.get("/page", options: ["--compressed"])
            #expect(reply.status == 200 && reply.exit == 0 && reply.text == Self.text, "\(reply.exit) \(reply.heads)")
            let same = try await world.get("/page", [Self.gzip])
            #expect(same.body == Self.zipped && same["content-encoding"] == "gzip" && same["etag"] == "\"v1\"")
        }
    }

    @Test func aHeadHasTheSameFieldsAndNothingBehindThem() async throws {
        try await withCodedCopy { world in
            expectDecoded(try await world.get("/page"))
            let connection = try await RawConnection.open(world.server.gateway)
            try await connection.send("HEAD /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            let text = try await connection.readToEnd()
            let head = MessageHead(text)
            #expect(head.status == 200 && text.hasSuffix("\r\n\r\n"), "\(text)")
            #expect(head["content-encoding"] == nil && head["etag"] == "W/\"v1\"", "\(text)")
            #expect(head["content-length"] != "\(Self.zipped.count)" && head["cache-status"]?.contains("detail=variant") == true, "\(text)")
        }
    }

    @Test func aRangeIsOneOfTheText() async throws {
        try await withCodedCopy { world in
            let reply = try await world.get("/page", options: ["-r", "0-3"])
            let expected = reply.status == 206 ? String(Self.text.prefix(4)) : Self.text
            #expect([200, 206].contains(reply.status) && reply.exit == 0 && reply.text == expected, "\(reply.heads) \(reply.text)")
            #expect(reply["content-encoding"] == nil)
        }
    }

    @Test func aCopyOfTheTextServesWhoTakesGzip() async throws {
        try await PlayedWorld.with(Self.negotiating()) { world in
            try await #expect(world.get("/page").text == Self.text)
            try await world.stored("/page")
            try await world.turn("offline")
            let reply = try await world.get("/page", options: ["--compressed"])
            #expect(reply.status == 200 && reply.text == Self.text && reply["content-encoding"] == nil, "\(reply.heads)")
        }
    }

    @Test func whatStandsInForAnErrorIsDecodedToo() async throws {
        let fields = ["Cache-Control: max-age=0, stale-if-error=600", "ETag: \"v1\"", "Vary: Accept-Encoding"]
        try await PlayedWorld.with(Self.negotiating(fields)) { world in
            try await #expect(world.get("/page", [Self.gzip]).body == Self.zipped)
            try await world.stored("/page")
            world.site.play { _ in .text("broken", status: 503) }
            let reply = try await world.get("/page")
            #expect(reply.status == 200 && reply.exit == 0 && reply.text == Self.text, "\(reply.heads) \(reply.text)")
            #expect(reply["content-encoding"] == nil && reply["cache-status"]?.contains("hit") == true, "\(reply.heads)")
        }
    }

    private static let script = """
        import sys, urllib.request
        sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
        """

    @Test func whatWasPrefetchedServesEveryClient() async throws {
        try await PlayedWorld.with(Self.negotiating()) { world in
            let fetched = try await world.server.command("cache", "prefetch", world.url("/page"))
            #expect(fetched.status == 0, "\(fetched.output) \(fetched.errors)")
            try await world.turn("offline")
            for options in [[], ["--compressed"]] {
                let reply = try await world.get("/page", options: options)
                #expect(reply.status == 200 && reply.exit == 0 && reply.text == Self.text, "\(options): \(reply.exit) \(reply.heads)")
            }
            let python = try await Command.run("/usr/bin/env", ["python3", "-c", Self.script, "http://\(world.server.gateway)/page"])
            #expect(python.status == 0 && python.output == Self.text, "\(python.output) \(python.errors)")
        }
    }

    enum Damage: String, CaseIterable {
        case noGzip, truncated, changed

        var bytes: [UInt8] {
            var bytes = CodingTests.zipped
            switch self {
            case .noGzip: bytes = Array("This is no gzip, whatever its field says of it.".utf8)
            case .truncated: bytes.removeLast(20)
            case .changed: bytes[40] ^= 0xFF
            }
            return bytes
        }
    }

    @Test(arguments: Damage.allCases) func whatCannotBeDecodedIsNoAnswer(_ damage: Damage) async throws {
        try await PlayedWorld.with(Self.negotiating(coded: damage.bytes)) { world in
            try await #expect(world.get("/page", [Self.gzip]).body == damage.bytes)
            try await world.stored("/page")
            try await world.turn("offline")
            let reply = try await world.get("/page")
            #expect(reply.exit != 0 || reply.status >= 500, "\(reply.heads) \(reply.text)")
            #expect(world.server.isRunning)
        }
    }

    // MARK: variants, online

    @Test func whatListsTheSameCodingsIsOneVariant() async throws {
        try await PlayedWorld.with(Self.negotiating()) { world in
            for value in ["gzip, br", "br;q=1.0, gzip;q=0.8", "br,gzip", "gzip;q=0.5 , br"] {
                let reply = try await world.get("/page", ["Accept-Encoding: \(value)"])
                #expect(reply.status == 200 && reply.body == Self.zipped, "\(value)")
                try await world.stored("/page")
            }
            #expect(world.site.count("/page") == 1)
        }
    }

    /// One stored coding serves whoever accepts it, whatever else it lists.
    @Test func oneFetchServesAllThatAcceptTheCoding() async throws {
        try await PlayedWorld.with(Self.negotiating()) { world in
            for value in ["gzip", "gzip, br", "gzip, deflate, br, zstd", "*", "zstd;q=1, gzip;q=0.1"] {
                let reply = try await world.get("/page", ["Accept-Encoding: \(value)"])
                #expect(reply.status == 200 && reply.body == Self.zipped && reply["content-encoding"] == "gzip", "\(value)")
                try await world.stored("/page")
            }
            #expect(world.site.count("/page") == 1)
            // Another one is fetched for who does not.
            for value in ["identity", "br"] {
                let reply = try await world.get("/page", ["Accept-Encoding: \(value)"])
                #expect(reply.status == 200 && reply.text == Self.text, "\(value)")
            }
        }
    }

    /// Content that its origin leaves as it is, for a client that accepts codings, serves the others too.
    @Test func contentWithoutACodingServesAll() async throws {
        let fields = ["Cache-Control: max-age=600", "Content-Type: text/plain", "Vary: Accept-Encoding"]
        try await PlayedWorld.with({ _ in PlayedSite.Said(fields: fields, body: Array(Self.text.utf8)) }) { world in
            for value in ["gzip", "gzip, br", "identity", "*"] {
                try await #expect(world.get("/page", ["Accept-Encoding: \(value)"]).text == Self.text)
                try await world.stored("/page")
            }
            #expect(world.site.count("/page") == 1)
        }
    }

    /// `text` as written by libbrotlienc (quality 5).
    private static let brotli: [UInt8] = [
        0x1B, 0x02, 0x01, 0x00, 0x04, 0xFE, 0xDD, 0x56, 0xB7, 0xA4, 0x17, 0x92, 0x74, 0x4B, 0x36, 0x14, 0xC5, 0x81, 0x2B, 0x0E, 0xDC,
        0x97, 0xE3, 0x6C, 0x76, 0xA4, 0x01, 0xF1, 0x65, 0xB7, 0x25, 0xB5, 0x05, 0xAD, 0x2D, 0xF1, 0xA7, 0xB7, 0x07, 0x7B, 0x7E, 0xE3,
        0xD7, 0x1B, 0xE6, 0x73, 0x28, 0x1F, 0x6D, 0x93, 0xBC, 0xD6, 0xBE, 0x0D, 0xF9, 0x32, 0xA6, 0xF2, 0x10, 0x4F, 0x8B, 0x02, 0x72,
        0x64, 0x95, 0x88, 0x20, 0x49, 0x5C, 0xE8, 0x8A, 0x86, 0x2C, 0x42, 0xA5, 0xEC, 0x02, 0xE4, 0x09, 0x11, 0xE3, 0xD2, 0xF7, 0x35,
        0xB4, 0xDF, 0xAF, 0x05, 0x22, 0x4F, 0xF8, 0xFE, 0x25, 0x4F, 0x6D, 0x5C, 0x3C, 0x58, 0x43, 0xC9, 0x89, 0x40, 0x7E, 0x4E, 0xCC,
        0x58, 0x3F, 0xDF, 0x70, 0x65, 0x2D,
    ]

    @Test func whoDoesNotTakeBrotliGetsTheText() async throws {
        guard ContentCoding.decodable.contains("br") else { return }
        try await PlayedWorld.with({ _ in PlayedSite.Said(fields: Self.fields + ["Content-Encoding: br"], body: Self.brotli) }) { world in
            let online = try await world.get("/page", ["Accept-Encoding: br"])
            #expect(online.body == Self.brotli)
            try await world.stored("/page")
            try await world.turn("offline")
            for fields in [[], [Self.gzip]] { expectDecoded(try await world.get("/page", fields), "\(fields)") }
            try await #expect(world.get("/page", ["Accept-Encoding: gzip, br"]).body == Self.brotli)
        }
    }

    /// An origin that answers with the requested languages.
    private static func reflectingLanguages(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        .text(asked["accept-language"] ?? "none", "Cache-Control: max-age=600", "Vary: Accept-Language")
    }

    @Test func languagesInTheSameOrderAreOneVariant() async throws {
        try await PlayedWorld.with({ Self.reflectingLanguages($0) }) { world in
            for value in ["de, en;q=0.5", "en;q=0.3, de;q=0.9"] {
                try await #expect(world.get("/page", ["Accept-Language: \(value)"]).text == "de, en;q=0.5")
                try await world.stored("/page")
            }
            #expect(world.site.count("/page") == 1)
            try await #expect(world.get("/page", ["Accept-Language: en, de;q=0.5"]).text == "en, de;q=0.5")
            #expect(world.site.count("/page") == 2)
        }
    }

    /// A response with a content coding varies by the coding, even if its origin sends no Vary.
    @Test func codedContentWithoutVaryIsNotForEverybody() async throws {
        try await PlayedWorld.with(Self.negotiating(["Cache-Control: max-age=600", "Content-Type: text/plain"])) { world in
            try await #expect(world.get("/page", [Self.gzip]).body == Self.zipped)
            try await world.stored("/page")
            let plain = try await world.get("/page")
            #expect(plain.status == 200 && plain.text == Self.text && plain["content-encoding"] == nil, "\(plain.heads)")
            #expect(world.site.count("/page") == 2)
        }
    }

    // MARK: substituted variants

    @Test func anotherLanguageIsBetterThanNone() async throws {
        try await PlayedWorld.with({ Self.reflectingLanguages($0) }) { world in
            try await #expect(world.get("/page", ["Accept-Language: de"]).text == "de")
            try await world.stored("/page")
            try await world.turn("offline")
            let reply = try await world.get("/page", ["Accept-Language: fr"])
            #expect(reply.status == 200 && reply.text == "de", "\(reply.text)")
            #expect(reply["cache-status"]?.contains("detail=variant") == true, "\(reply["cache-status"] ?? "none")")
        }
    }

    @Test func noCopyStandsInForAnotherIdentity() async throws {
        let fields = ["Cache-Control: private, max-age=60", "Vary: Accept-Encoding"]
        try await PlayedWorld.with(Self.negotiating(fields)) { world in
            let (a, b) = ("Authorization: Bearer a", "Authorization: Bearer b")
            try await #expect(world.get("/page", [a, Self.gzip]).body == Self.zipped)
            try await world.stored("/page")
            try await world.turn("offline")
            for another in [[b], [b, Self.gzip], [], [Self.gzip]] {
                let reply = try await world.get("/page", another)
                expectProblem(reply, "offline-miss", 504)
                #expect(!reply.text.contains("tide"), "\(another)")
            }
            let own = try await world.get("/page", [a])
            #expect(own.status == 200 && own.text == Self.text, "\(own.heads)")
        }
    }
}
