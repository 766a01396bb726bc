// The ring of the last exchanges: its bounds, its sampling and its records (docs/reference/admin-api.md#requests).
import HTTPTypes
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite(.timeLimit(.minutes(1))) struct ExchangeRingTests {
    private static let start = Timestamp(seconds: 1_000_000)

    private func write(_ target: String, fields: HTTPFields = [:]) -> RecordedExchange.Content {
        let request = RequestHead(method: .put, origin: .notes, target: target, fields: fields)
        return .operation(
            QueuedWrite(
                sequence: 1, id: "op", state: .dead, request: request, body: .none, upstream: "notes", lane: "a", idempotencyKey: "k",
                acceptedAt: Self.start, nextAttemptAt: Self.start), why: "the upstream refused it")
    }

    @Test func theLastTenThousandAreHeld() throws {
        let ring = ExchangeRing(start: Self.start)
        for number in 1...10_050 { ring.append(write("/\(number)"), at: Self.start, represents: 1) }
        #expect(ring.count == ExchangeRing.capacity && ring.last == 10_050)
        let (items, next) = ring.page(ExchangeFilter(), below: nil, limit: 3)
        #expect(items.map(\.url) == ["http://api.test/10050", "http://api.test/10049", "http://api.test/10048"])
        let second = ring.page(ExchangeFilter(), below: next, limit: 1)
        #expect(second.items.map(\.url) == ["http://api.test/10047"])
        #expect(ring.record(id: items[0].id) == items[0])
        #expect(ring.record(id: items[0].id.replacing("-10050", with: "-50")) == nil && ring.record(id: "x-1") == nil)
        let news = ring.news(ExchangeFilter(), after: 10_048)
        #expect(news.items.map(\.url) == ["http://api.test/10049", "http://api.test/10050"] && news.last == 10_050)
        #expect(ring.news(ExchangeFilter(), after: 10_050).items == [])
    }

    @Test func longRequestsTakeTheRoomOfOlderOnes() {
        let ring = ExchangeRing(start: Self.start)
        let long = String(repeating: "a", count: 64 * 1024)
        for _ in 0..<1000 { ring.append(write("/" + long), at: Self.start, represents: 1) }
        #expect(ring.count < ExchangeRing.byteLimit / (64 * 1024) && ring.count > 200)
    }

    @Test func aboveARateOneOfManyIsRecordedAndStandsForTheOthers() {
        let ring = ExchangeRing(start: Self.start)
        let weights = (0..<17_000).map { _ in ring.admit(isNotable: false, at: Self.start) }
        #expect(weights.prefix(1000).allSatisfy { $0 == 1 } && weights.count { $0 > 0 } == 1000 + 1000)
        #expect(weights.reduce(0, +) == 17_000 - 17_000 % 16)
        #expect(ring.admit(isNotable: true, at: Self.start) == 1)
        #expect(ring.admit(isNotable: false, at: Self.start + .seconds(1)) == 1 + 17_000 % 16)
    }

    @Test func hitsOfALoopAreSampledLikewise() {
        var (sampling, recorded, sum) = (HotSampling(), 0, 0)
        for hit in 0..<100_000 {
            let now = Self.start + .milliseconds(Int64(hit / 100))
            guard sampling.isDue(at: now) else {
                sampling.skip()
                continue
            }
            recorded += 1
            sum += sampling.take(at: now)
        }
        #expect(recorded >= HotSampling.fullRate && recorded <= HotSampling.fullRate + 100_000 / HotSampling.stride + 1)
        #expect(sum <= 100_000 && sum > 100_000 - HotSampling.stride)
        // The first hit of the next second stands for the rest.
        let last = Self.start + .seconds(2)
        #expect(sampling.isDue(at: last))
        sum += sampling.take(at: last)
        #expect(sum == 100_001)
    }

    @Test func anExchangeIsRecordedWithItsReasonAndWithoutItsCredential() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("pearl", [.cacheControl: "max-age=10, private"]))
        let fields: HTTPFields = [.authorization: "Bearer planted", .accept: "text/plain"]
        for _ in 0..<2 { _ = await pool.answered("/a?token=planted", fields) }
        let items = pool.engine.exchanges.page(ExchangeFilter(), below: nil, limit: 10).items
        #expect(items.map(\.verdict) == ["hit", "miss"] && items.map(\.status) == [200, 200] && items.map(\.bytes) == [5, 5])
        let miss = try #require(items.last)
        #expect(miss.upstream == "notes" && miss.url == "http://api.test/a?token=REDACTED" && miss.client != nil)
        #expect(miss.steps.map(\.name) == ["routed", "looked", "decided", "fetched", "stored"] && !miss.why.isEmpty)
        #expect(miss.requestFields[.accept] == "text/plain" && miss.requestFields[.authorization] == nil)
        #expect(!String(decoding: miss.detailedJSON.serialized(), as: UTF8.self).contains("planted"))
    }

    @Test func aWriteThatDiesIsRecordedWithTheNextStep() async throws {
        let ring = ExchangeRing(start: Self.start)
        ring.append(write("/v1/notes/1"), at: Self.start, represents: 1)
        let one = try #require(ring.page(ExchangeFilter(), below: nil, limit: 1).items.first)
        #expect(one.verdict == "dead" && one.status == 0 && one.why == "the upstream refused it")
        #expect(one.next == "rockpool outbox show op" && one.operation == "op" && one.upstream == "notes")
    }
}

extension ScriptedEngine {
    /// Sends a request and reports the end of its reply, as a connection does.
    fileprivate func answered(_ target: String, _ fields: HTTPFields) async -> Reply {
        let reply = await engine.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: target, fields: fields)))
        let whole = await WholeReply(reply)
        reply.ended(ReplyEnd(bytes: Int64(whole.body.utf8.count)))
        return reply
    }
}
