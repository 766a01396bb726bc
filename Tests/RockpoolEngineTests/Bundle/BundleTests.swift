// Bundles from one engine into another: content that is transferred, never exported, or rejected on import
// (docs/reference/admin-api.md#bundles `cache export|import`).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct BundleTests {
    private func export(_ pool: ScriptedEngine, prefix: String = "", category: String? = nil) async throws -> ByteBuffer {
        var all = ByteBuffer()
        let engine = pool.engine
        let export = BundleExport(cache: engine.cache, active: engine.active, prefix: prefix, category: category, now: engine.now)
        try await export.run { all.writeImmutableBuffer($0) }
        return all
    }

    private func take(_ bytes: ByteBuffer, into pool: ScriptedEngine, step: Int = .max) async throws -> BundleReport {
        let engine = pool.engine
        var bundle = BundleImport(cache: engine.cache, reads: engine.reads, active: engine.active, now: engine.now)
        var bytes = bytes
        while bytes.readableBytes > 0, let part = bytes.readSlice(length: min(step, bytes.readableBytes)) { try await bundle.take(part) }
        return try bundle.finish()
    }

    private static let bodies: ScriptedOrigin.Rule = { sent in
        let large = String(repeating: "mother of pearl ", count: 3_000)
        return sent.head.target.hasPrefix("/large")
            ? .ok(large, [.contentType: "image/png", .cacheControl: "max-age=60"])
            : .ok("pearl \(sent.head.target)", [.contentType: "text/plain", .cacheControl: "max-age=60", .eTag: "\"1\""])
    }

    @Test(arguments: [1, 333, .max]) func whatWasStoredIsServedElsewhere(step: Int) async throws {
        let here = try ScriptedEngine(rule: Self.bodies)
        for target in ["/a", "/large"] { await here.ask(.get, target) }
        here.clock.advance(by: .seconds(7))
        let there = try ScriptedEngine(rule: { _ in .refused })
        there.clock.advance(by: .seconds(10))
        // Byte-by-byte import is tested with the small body only.
        let bundle = try await export(here, prefix: step == 1 ? "http://api.test/a" : "")
        let report = try await take(bundle, into: there, step: step)
        #expect(report.imported == (step == 1 ? 1 : 2) && report.skipped.isEmpty)
        let reply = await there.ask(.get, "/a")
        #expect(reply.body == "pearl /a" && reply["ETag"] == "\"1\"" && reply["Content-Type"] == "text/plain")
        #expect(reply["Age"] == "71" && reply.cacheStatus == "rockpool; hit; ttl=-11; detail=offline")
        if step != 1 { #expect(await there.ask(.get, "/large").body.utf8.count == 48_000) }
    }

    @Test func variantsTravelWithWhatSelectsThem() async throws {
        let here = try ScriptedEngine(rule: { sent in
            .ok(sent.head.fields[.acceptLanguage] ?? "none", [.cacheControl: "max-age=60", .vary: "Accept-Language"])
        })
        for language in ["de", "en"] { await here.ask(.get, "/a", [.acceptLanguage: language]) }
        let there = try ScriptedEngine(rule: { _ in .refused })
        #expect(try await take(try await export(here), into: there).imported == 2)
        for language in ["de", "en"] { #expect(await there.ask(.get, "/a", [.acceptLanguage: language]).body == language) }
    }

    @Test func whatIsSomebodysNeverLeaves() async throws {
        let here = try ScriptedEngine(rule: { sent in
            switch sent.head.target {
            case "/private": .ok("mine", [.cacheControl: "private, max-age=60"])
            case "/vary": .ok("selected", [.cacheControl: "public, max-age=60", .vary: "Authorization"])
            case "/shared": .ok("ours", [.cacheControl: "public, max-age=60"])
            default: .ok("answer", [.cacheControl: "max-age=60"])
            }
        })
        for target in ["/private", "/vary", "/shared", "/credentials"] {
            await here.ask(.get, target, [.authorization: "Bearer s3cret", .cookie: "sid=s3cret"])
        }
        await here.ask(.get, "/private")
        let text = String(buffer: try await export(here))
        #expect(text.contains("ours"))
        for secret in ["s3cret", "mine", "selected", "answer"] { #expect(!text.contains(secret), "\(secret)") }
    }

    @Test func aPrefixAndACategoryNarrowIt() async throws {
        let here = try ScriptedEngine(rule: Self.bodies)
        for target in ["/a", "/b", "/large"] { await here.ask(.get, target) }
        let targets = { (text: ByteBuffer) in ["/a", "/b", "/large"].filter { String(buffer: text).contains("GET \($0) ") } }
        #expect(targets(try await export(here, prefix: "http://api.test/b")) == ["/b"])
        #expect(targets(try await export(here, category: "assets")) == ["/large"])
    }

    @Test func anInvalidatedEntryStaysInvalidated() async throws {
        let here = try ScriptedEngine(rule: Self.bodies)
        await here.ask(.get, "/a")
        _ = try await here.store.cache.invalidate(urls: ["http://api.test/a"])
        let there = try ScriptedEngine(rule: Self.bodies)
        #expect(try await take(try await export(here), into: there).imported == 1)
        let request = try RequestHead(url: "http://api.test/a")
        #expect(try await there.store.cache.lookup(CacheKey(request)).first?.response.isInvalidated == true)
    }

    /// An imported entry is revalidated with its origin before it counts as fresh, whatever freshness it declares.
    @Test(arguments: [CachePolicy.standard, .offlineFirst]) func whatIsImportedIsAskedAboutFirst(policy: CachePolicy) async throws {
        let here = try ScriptedEngine(rule: { _ in
            .ok("pearl", [.cacheControl: "max-age=60, stale-while-revalidate=600", .eTag: "\"1\""])
        })
        await here.ask(.get, "/a")
        let there = try ScriptedEngine(
            upstreams: [.notes { $0.policy = policy }], rule: { _ in .status(304, [.eTag: "\"1\"", .cacheControl: "max-age=60"]) })
        #expect(try await take(try await export(here), into: there).imported == 1)
        #expect(await there.ask(.get, "/a").cacheStatus?.contains("fwd=stale; fwd-status=304") == true)
        #expect(await there.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=60")
        #expect(there.origin.sent.count == 1)
    }

    @Test func onlyWhatIsNewerReplaces() async throws {
        let here = try ScriptedEngine(rule: Self.bodies)
        await here.ask(.get, "/a")
        let bundle = try await export(here)
        let there = try ScriptedEngine(rule: { _ in .ok("newer") })
        #expect(try await take(bundle, into: there).imported == 1)
        #expect(try await take(bundle, into: there).skipped.map(\.reason) == ["already stored"])
        there.clock.advance(by: .minutes(2))
        await there.ask(.get, "/a", [.cacheControl: "no-cache"])
        let report = try await take(bundle, into: there)
        #expect(report.skipped.map(\.reason) == ["a newer copy is stored"] && report.skipped.map(\.record) == [3])
        #expect(await there.ask(.get, "/a").body == "newer")
    }

    /// Returns a bundle with one response, as another tool might write it.
    private func foreign(
        _ head: String = "Cache-Control: max-age=60\r\n", status: String = "200 OK", body: String = "pearl",
        url: String = "http://api.test/f",
        named: String = "", request: String? = "", date: String = "2026-01-01T00:00:00Z"
    ) -> ByteBuffer {
        let record = { (type: String, more: String, block: String) in
            "WARC/1.0\r\nWARC-Type: \(type)\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: \(date)\r\nWARC-Target-URI: <\(url)>\r\n"
                + "Content-Type: application/http; msgtype=\(type)\r\n\(more)Content-Length: \(block.utf8.count)\r\n\r\n\(block)\r\n\r\n"
        }
        let requests = request.map { record("request", "", "GET /f HTTP/1.1\r\nHost: api.test\r\n\($0)\r\n") } ?? ""
        return ByteBuffer(string: requests + record("response", named, "HTTP/1.1 \(status)\r\n\(head)\r\n\(body)"))
    }

    @Test func anotherToolsBundleIsTaken() async throws {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        let digest = "WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\r\n"
        #expect(try await take(foreign(body: "", named: digest), into: pool).imported == 1)
        #expect(await pool.ask(.get, "/f").status == 200)
    }

    @Test func whatMayNotBeStoredIsNotTaken() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.routes = [Route(match: "/never/**", store: .never)] }])
        let plain = "Cache-Control: max-age=60\r\n"
        let zeros = "sha256:" + String(repeating: "0", count: 64)
        let cases: [(ByteBuffer, String)] = [
            (foreign("Cache-Control: no-store\r\n"), "not storable: no-store"),
            (foreign("Cache-Control: private, max-age=60\r\n"), "not storable: private"),
            (foreign("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n"), "not storable: private"),
            (foreign(plain, status: "206 Partial Content"), "not storable: partial"),
            (foreign(plain, url: "http://api.test/never/x"), "not storable: route"),
            (foreign(plain, request: "X-HTTP-Method-Override: DELETE\r\n"), "not storable: override-header"),
            (foreign(plain, request: "Authorization: Bearer x\r\n"), "not storable: credentials"),
            (foreign(plain + "Vary: *\r\n"), "not storable: vary-star"),
            (foreign(plain + "Vary: Accept\r\n", request: nil), "it varies, and its request is not the record before it"),
            (foreign(plain + "Transfer-Encoding: chunked\r\n"), "its body is still in a transfer coding"),
            (foreign(plain + "Content-Length: 4\r\n"), "its Content-Length is not the length of its body"),
            (foreign(plain, status: "2000"), "no status line of HTTP/1 or HTTP/2"),
            (foreign(plain, named: "WARC-Payload-Digest: \(zeros)\r\n"), "its digest is not that of its body"),
            (foreign(plain, named: "WARC-Payload-Digest: md5:00\r\n"), "its WARC-Payload-Digest is neither SHA-256 nor SHA-1"),
            (foreign(plain, url: "ftp://api.test/f"), "the target's scheme is neither http nor https"),
            (foreign(plain, date: "yesterday"), "its WARC-Date cannot be read"),
            (foreign(plain, date: "2026-01-01T00:00:11Z"), "its WARC-Date is in the future"),
            (foreign(plain, named: "Rockpool-Received-At: 2026-01-02T00:00:00Z\r\n"), "its WARC-Date is in the future"),
            (foreign(plain + "Date: Fri, 02 Jan 2026 00:00:00 GMT\r\n"), "its Date is in the future"),
            (foreign(plain, url: "http://127.0.0.1:7625/f"), "its origin is a listener of Rockpool itself"),
            (foreign(plain, url: "http://localhost:7626/f"), "its origin is a listener of Rockpool itself"),
        ]
        for (bundle, reason) in cases {
            let report = try await take(bundle, into: pool)
            #expect(report.imported == 0 && report.skipped.map(\.reason) == [reason], "\(report)")
        }
        #expect(try await pool.store.cache.usage().entries == 0)
    }

    @Test func whatIsTooLargeForItsCategoryIsNotTaken() async throws {
        let pool = try ScriptedEngine(configure: { configuration in
            configuration.categories = configuration.categories.map { category in
                var category = category
                if category.name == "assets" { category.maxObject = ByteCount(10) }
                return category
            }
        })
        let image = "Cache-Control: max-age=60\r\nContent-Type: image/png\r\n"
        #expect(try await take(foreign(image, body: "0123456789"), into: pool).imported == 1)
        let report = try await take(foreign(image, body: "0123456789x", url: "http://api.test/g"), into: pool)
        #expect(report.skipped.map(\.reason) == ["there is no room for it, or it is larger than its category allows"])
    }

    /// A date up to some seconds in the future counts as now, because clocks differ.
    @Test func aTimeToComeInAMomentIsNow() async throws {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        #expect(try await take(foreign(date: "2026-01-01T00:00:10Z"), into: pool).imported == 1)
        pool.clock.advance(by: .seconds(59))
        #expect(await pool.ask(.get, "/f").cacheStatus == "rockpool; hit; ttl=-60; detail=offline")
    }

    @Test func aFaultNamesItsRecordAndTakesNothingBack() async throws {
        let pool = try ScriptedEngine(rule: { _ in .refused })
        var bytes = foreign()
        bytes.writeString("WARC/1.1\r\nnonsense\r\n\r\n")
        await #expect(throws: WARCFault(record: 3, reason: "a line of its head is no named field")) { try await take(bytes, into: pool) }
        #expect(await pool.ask(.get, "/f").body == "pearl")
        let whole = foreign(url: "http://api.test/cut")
        let cut = try #require(whole.getSlice(at: 0, length: whole.readableBytes - 6))
        await #expect(throws: WARCFault(record: 2, reason: "the file ends within it")) { try await take(cut, into: pool) }
        #expect(await pool.ask(.get, "/cut").status == 504)
    }
}
