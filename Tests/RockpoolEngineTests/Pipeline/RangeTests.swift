// Parts: cut from what is stored, stored when they come, completed and resumed; never served as the whole (RFC 9110 §14, RFC 9111 §3.4).
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

    /// The answer to a range, as an origin gives it.
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
        #expect(pool.origin.sent.last?.head.fields[.range] == nil)
    }

    @Test func theRestOfABeginningIsFetchedAndTheWholeStored() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(Self.part(0..<4), Self.part(4..<10))
        await pool.ask(.get, "/a", [.range: "bytes=0-3"])
        let whole = await pool.ask(.get, "/a")
        #expect(pool.origin.sent.last?.head.fields[.range] == "bytes=4-" && pool.origin.sent.last?.head.fields[.ifRange] == "\"v1\"")
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
        pool.origin.next(Self.part(0..<4), Self.part(4..<10, tag: "\"v2\""), .ok("abcdefghij", Self.fields))
        await pool.ask(.get, "/a", [.range: "bytes=0-3"])
        #expect(await pool.ask(.get, "/a").body == "abcdefghij")
        #expect(pool.origin.sent.count == 3 && pool.origin.sent.last?.head.fields[.range] == nil)
    }

    @Test func anInterruptedDownloadIsResumed() async throws {
        let pool = try ScriptedEngine()
        let cut = TransferFailure(kind: .reset, sent: .yes, detail: "cut")
        pool.origin.next(.broken(ResponseHead(status: 200, fields: Self.fields), ["01234"], cut), Self.part(5..<10))
        #expect(await pool.ask(.get, "/a").failure == cut)
        let resumed = await pool.ask(.get, "/a")
        #expect(pool.origin.sent.last?.head.fields[.range] == "bytes=5-")
        #expect(resumed.status == 200 && resumed.body == Self.whole && resumed.failure == nil)
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=60")
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
