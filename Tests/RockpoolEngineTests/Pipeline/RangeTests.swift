// Partial content: sliced from stored responses, stored, completed and resumed; never served as the complete body (RFC 9110 §14, RFC 9111
// §3.4).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct RangeTests {
    private static let whole = "0123456789"
    private static let fields: HTTPFields = [.cacheControl: "max-age=60", .eTag: "\"v1\"", .contentLength: "10"]

    /// Returns an origin's response to a range request.
    private static func part(_ range: Range<Int>, tag: String = "\"v1\"") -> ScriptedAnswer {
        let bytes = String(whole.dropFirst(range.lowerBound).prefix(range.count))
        let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/10"
        return .answer(
            ResponseHead(status: 206, fields: [.cacheControl: "max-age=60", .eTag: tag, .contentRange: place]), [bytes])
    }

    @Test(
        arguments: [
            ("bytes=2-4", 206, "234", "bytes 2-4/10"), ("bytes=7-", 206, "789", "bytes 7-9/10"), ("bytes=-3", 206, "789", "bytes 7-9/10"),
            ("bytes=20-", 416, "", "bytes */10"), ("lines=1-2", 200, whole, nil), ("bytes=4-2", 200, whole, nil),
        ] as [(String, Int, String, String?)])
    func aRangeIsCutFromAStoredWhole(range: String, status: Int, body: String, place: String?) async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok(Self.whole, Self.fields) })
        await pool.ask(.get, "/a")
        let reply = await pool.ask(.get, "/a", [.range: range])
        #expect(reply.status == status && reply.body == body && reply["Content-Range"] == place)
        #expect(reply.cacheStatus == "rockpool; hit; ttl=60" && pool.origin.sent.count == 1)
    }

    @Test func rangesOfALargeBodyComeFromItsFile() async throws {
        let large = String(repeating: "0123456789", count: 200_000)
        let pool = try ScriptedEngine(rule: { _ in .ok(large, [.cacheControl: "max-age=60"]) })
        await pool.ask(.get, "/a")
        #expect(await pool.ask(.get, "/a", [.range: "bytes=1234567-1234570"]).body == "7890")
        let several = await pool.ask(.get, "/a", [.range: "bytes=0-1,1000000-1000002"])
        #expect(several.status == 206 && several.body.contains("\r\n\r\n01\r\n--") && several.body.contains("\r\n\r\n012\r\n--"))
        #expect(several["Content-Length"] == "\(several.body.utf8.count)")
    }

    @Test(arguments: [("\"v1\"", 206), ("\"v2\"", 200), ("W/\"v1\"", 200)])
    func ifRangeComparesStrongly(tag: String, status: Int) async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok(Self.whole, Self.fields) })
        await pool.ask(.get, "/a")
        #expect(await pool.ask(.get, "/a", [.range: "bytes=0-1", .ifRange: tag]).status == status)
    }

    @Test func aPartIsStoredAndAnswersWhatItHoldsAndNothingElse() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(Self.part(2..<6))
        #expect(await pool.ask(.get, "/a", [.range: "bytes=2-5"]).cacheStatus == "rockpool; fwd=uri-miss; stored")
        let within = await pool.ask(.get, "/a", [.range: "bytes=3-4"])
        #expect(within.status == 206 && within.body == "34" && within["Content-Range"] == "bytes 3-4/10")
        #expect(pool.origin.sent.count == 1)
        pool.origin.answers { _ in .ok(Self.whole, Self.fields) }
        #expect(await pool.ask(.get, "/a").body == Self.whole)
        // Only what is missing before the part; the origin's answer is the whole all the same.
        #expect(pool.origin.sent.count == 2 && pool.origin.sent.last?.head.fields[.range] == "bytes=0-1")
    }

    @Test func theRestOfABeginningIsFetchedAndTheWholeStored() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(Self.part(0..<4), Self.part(3..<10))
        await pool.ask(.get, "/a", [.range: "bytes=0-3"])
        let whole = await pool.ask(.get, "/a")
        #expect(pool.origin.sent.last?.head.fields[.range] == "bytes=3-" && pool.origin.sent.last?.head.fields[.ifRange] == "\"v1\"")
        #expect(whole.status == 200 && whole.body == Self.whole && whole["Content-Range"] == nil)
        #expect(whole.cacheStatus == "rockpool; fwd=partial; fwd-status=206; stored")
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=60")
        #expect(pool.origin.sent.count == 2)
    }

    @Test func aPartBehindAStoredOneIsAddedToIt() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(Self.part(0..<4), Self.part(4..<8))
        await pool.ask(.get, "/a", [.range: "bytes=0-3"])
        #expect(await pool.ask(.get, "/a", [.range: "bytes=4-7"]).body == "4567")
        #expect(await pool.ask(.get, "/a", [.range: "bytes=2-5"]).body == "2345")
        #expect(pool.origin.sent.count == 2)
    }

    @Test func whatHasChangedIsNotPutTogether() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(Self.part(0..<4), Self.part(3..<10, tag: "\"v2\""), .ok("abcdefghij", Self.fields))
        await pool.ask(.get, "/a", [.range: "bytes=0-3"])
        #expect(await pool.ask(.get, "/a").body == "abcdefghij")
        #expect(pool.origin.sent.count == 3 && pool.origin.sent.last?.head.fields[.range] == nil)
    }

    @Test func anInterruptedDownloadIsResumed() async throws {
        let pool = try ScriptedEngine()
        let cut = TransferFailure(kind: .reset, sent: .yes, detail: "cut")
        pool.origin.next(.broken(ResponseHead(status: 200, fields: Self.fields), ["01234"], cut), Self.part(4..<10))
        #expect(await pool.ask(.get, "/a").failure == cut)
        let resumed = await pool.ask(.get, "/a")
        #expect(pool.origin.sent.last?.head.fields[.range] == "bytes=4-")
        #expect(resumed.status == 200 && resumed.body == Self.whole && resumed.failure == nil)
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=60")
    }

    /// An origin with a wrong strong ETag: its byte at the last stored position differs.
    @Test func aRestThatDoesNotContinueWhatIsStoredIsFetchedAnew() async throws {
        let pool = try ScriptedEngine()
        let other = "abcdefghij"
        let lie = ResponseHead(status: 206, fields: [.cacheControl: "max-age=60", .eTag: "\"v1\"", .contentRange: "bytes 3-9/10"])
        pool.origin.next(Self.part(0..<4), .answer(lie, [String(other.dropFirst(3))]), .ok(other, Self.fields))
        await pool.ask(.get, "/a", [.range: "bytes=0-3"])
        #expect(await pool.ask(.get, "/a").body == other)
        #expect(pool.origin.sent.count == 3 && pool.origin.sent.last?.head.fields[.range] == nil)
        #expect(await pool.ask(.get, "/a").body == other)
    }

    /// The byte at the seam is equal, but a later one differs: only the digest of the complete body reveals the error.
    @Test func aWholeThatIsNotItsHashIsBrokenOffAndFetchedAnew() async throws {
        let pool = try ScriptedEngine()
        // The digest of "0123456789".
        var fields = Self.fields
        fields[.init("Repr-Digest")!] = "sha-256=:hNiYd/DUBB77a/kaFvAkjy/Vc+avBcGflr7bn4gveII=:"
        let cut = TransferFailure(kind: .reset, sent: .yes, detail: "cut")
        let rest = ResponseHead(status: 206, fields: [.cacheControl: "max-age=60", .eTag: "\"v1\"", .contentRange: "bytes 4-9/10"])
        pool.origin.next(
            .broken(ResponseHead(status: 200, fields: fields), ["01234"], cut), .answer(rest, ["4x6789"]), .ok(Self.whole, fields))
        #expect(await pool.ask(.get, "/a").failure == cut)
        let wrong = await pool.ask(.get, "/a")
        #expect(wrong.failure != nil && wrong.body != "01234x6789")
        #expect(await pool.ask(.get, "/a").body == Self.whole)
        #expect(pool.origin.sent.last?.head.fields[.range] == nil)
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=60")
    }

    @Test func partsInAnyOrderBecomeOneWhole() async throws {
        let pool = try ScriptedEngine()
        let ranges = [6..<8, 0..<2, 3..<6, 8..<10, 2..<3]
        for range in ranges {
            pool.origin.next(Self.part(range))
            await pool.ask(.get, "/a", [.range: "bytes=\(range.lowerBound)-\(range.upperBound - 1)"])
        }
        pool.goOffline()
        let whole = await pool.ask(.get, "/a")
        #expect(whole.body == Self.whole && whole.status == 200 && whole["Content-Length"] == "10")
        #expect(pool.origin.sent.count == ranges.count)
        #expect(try await pool.store.cache.usage().entries == 1)
    }

    @Test func partsOfAnotherVersionTakeThePlaceOfTheFirst() async throws {
        let pool = try ScriptedEngine()
        for (range, tag) in [(0..<4, "\"v1\""), (6..<10, "\"v1\""), (4..<6, "\"v2\"")] {
            pool.origin.next(Self.part(range, tag: tag))
            await pool.ask(.get, "/a", [.range: "bytes=\(range.lowerBound)-\(range.upperBound - 1)"])
        }
        #expect(try await pool.store.cache.usage().entries == 1)
        pool.goOffline()
        #expect(await pool.ask(.get, "/a", [.range: "bytes=0-1"]).status == 504)
        #expect(await pool.ask(.get, "/a", [.range: "bytes=4-5"])["ETag"] == "\"v2\"")
    }

    @Test func aRangeOfAFetchUnderWayIsReadAlong() async throws {
        let pool = try ScriptedEngine()
        let feed = BodyPipe()
        pool.origin.next(.live(ResponseHead(status: 200, fields: Self.fields), feed, length: 10))
        let leader = await pool.engine.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: "/a")))
        guard case .stream(let first, _) = leader.body else { return #expect(Bool(false), "no stream") }
        feed.offer(ByteBuffer(string: "01234"))
        #expect(try await first.next() == ByteBuffer(string: "01234"))
        // A range that has been received already, and one that is still to be received.
        let early = await pool.ask(.get, "/a", [.range: "bytes=1-2"])
        #expect(early.status == 206 && early.body == "12" && early["Content-Range"] == "bytes 1-2/10" && early["Content-Length"] == "2")
        #expect(early.cacheStatus == "rockpool; fwd=uri-miss; collapsed")
        let late = Task { await pool.ask(.get, "/a", [.range: "bytes=6-8"]) }
        feed.offer(ByteBuffer(string: "56789"))
        feed.finish()
        #expect(await late.value.body == "678")
        #expect(await pool.ask(.get, "/a", [.range: "bytes=20-"]).status == 416)
        try await first.drain()
        #expect(pool.origin.sent.count == 1)
    }

    @Test func aPartNeverStandsInForTheWhole() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(Self.part(0..<4))
        await pool.ask(.get, "/a", [.range: "bytes=0-3"])
        pool.goOffline()
        #expect(await pool.ask(.get, "/a").status == 504)
        #expect(await pool.ask(.get, "/a", [.range: "bytes=0-1"]).body == "01")
    }

    @Test func anUnsolicitedPartIsPassedOnAndNotStored() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(Self.part(0..<4))
        #expect(await pool.ask(.get, "/a").status == 206)
        #expect(try await pool.store.cache.usage().entries == 0)
    }
}
