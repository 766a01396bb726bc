// The event stream's feed over a real engine: delivery, resumption after a known id, and streams that fell behind.
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolAdmin

@Suite struct EventFeedTests {
    private func feed(_ pool: ScriptedEngine) -> EventFeed {
        EventFeed(stats: StatsDocument(engine: pool.engine, startedAt: pool.clock.now), events: pool.engine.events)
    }

    /// Returns the names of the events in a piece of a stream.
    private func names(_ text: String?) -> [String]? {
        text?.split(separator: "\n").filter { $0.hasPrefix("event: ") }.map { String($0.dropFirst(7)) }
    }

    @Test func aListenerHearsWhatHappensAfterItCame() throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        pool.engine.events.tell(.storage(detail: "before"))
        var place = try #require(feed.join(after: nil) {})
        #expect(feed.frames(for: &place) == "")
        pool.engine.events.tell(.operation(id: "o1", state: .pending))
        pool.engine.events.tell(.conflict(id: "c1", operation: "o1", isOpen: true))
        pool.engine.events.tell(.credential(principal: "nobody's business"))
        #expect(names(feed.frames(for: &place)) == ["operation", "conflict"])
        #expect(feed.frames(for: &place) == "")
    }

    @Test func whoWasAwayGoesOnBehindTheLastEventItHad() throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        var first = try #require(feed.join(after: nil) {})
        pool.engine.events.tell(.operation(id: "o1", state: .pending))
        let heard = try #require(feed.frames(for: &first))
        let id = try #require(heard.split(separator: "\n").first?.dropFirst(4))
        feed.leave(first)
        pool.engine.events.tell(.operation(id: "o1", state: .delivered))
        var second = try #require(feed.join(after: String(id)) {})
        #expect(feed.frames(for: &second)?.contains("delivered") == true)
        var stranger = try #require(feed.join(after: "another-7") {})
        #expect(names(feed.frames(for: &stranger)) == ["gap", "operation", "operation"])
    }

    @Test(arguments: [0, 1]) func whoIsTooFarBehindLosesItsPlace(_ past: Int) throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        var place = try #require(feed.join(after: nil) {})
        for _ in 0..<(EventFeed.capacity + past) { pool.engine.events.tell(.storage(detail: "x")) }
        #expect((feed.frames(for: &place) == nil) == (past > 0))
    }

    @Test func onlySoManyListenAtOnce() throws {
        let feed = feed(try ScriptedEngine())
        let places = (0..<EventFeed.streamLimit).compactMap { _ in feed.join(after: nil) {} }
        #expect(places.count == EventFeed.streamLimit && feed.join(after: nil) {} == nil)
        feed.leave(places[0])
        #expect(feed.join(after: nil) {} != nil)
    }

    @Test func countersComeWithEveryLookWhileSomebodyListens() async throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(10))
        await feed.tick()
        var place = try #require(feed.join(after: nil) {})
        #expect(feed.frames(for: &place) == "", "no listener was connected during the first tick")
        await feed.tick()
        let text = try #require(feed.frames(for: &place))
        #expect(names(text) == ["stats"] && text.contains(#""total":1"#) && text.contains("p99Seconds"))
        #expect(feed.frames(for: &place) == "")
    }

    @Test func countersStandUnderTheIDOfTheLastEventBeforeThem() async throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        var place = try #require(feed.join(after: nil) {})
        await feed.tick()
        pool.engine.events.tell(.operation(id: "o1", state: .pending))
        let text = try #require(feed.frames(for: &place))
        let ids = text.split(separator: "\n").filter { $0.hasPrefix("id: ") }
        #expect(names(text) == ["operation", "stats"])
        #expect(Set(ids).count == 1, "resuming after an older id would deliver the operation again")
    }

    @Test func whoComesToAnEmptyRoomIsNotToldOldCounters() async throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        feed.leave(try #require(feed.join(after: nil) {}))
        let first = try #require(feed.join(after: nil) {})
        await feed.tick()
        var second = try #require(feed.join(after: nil) {})
        #expect(names(feed.frames(for: &second)) == ["stats"], "the counters were computed while the first listener was connected")
        feed.leave(first)
        feed.leave(second)
        var third = try #require(feed.join(after: nil) {})
        #expect(feed.frames(for: &third) == "")
    }

    @Test func aClockSetBackDoesNotStopTheHistory() async throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        for seconds in [10, -3600, 10, 10] as [Int64] {
            pool.clock.advance(by: .seconds(seconds))
            await feed.tick()
        }
        #expect(feed.history.count == 2, "an entry with an earlier time must not follow a later one")
    }

    @Test func historyIsTheTrafficOfEachStepAndBounded() async throws {
        let pool = try ScriptedEngine()
        let feed = feed(pool)
        for round in 1...3 {
            for _ in 0..<round { await pool.ask(.get, "/\(round)") }
            pool.clock.advance(by: .seconds(round == 3 ? 9 : 10))
            await feed.tick()
        }
        let totals = feed.history.map { $0["requests"]?.object?.reduce(0) { $0 + ($1.value.integer ?? 0) } }
        #expect(totals == [1, 2], "the third step is not over")
        for _ in 0...TrafficHistory.limit {
            pool.clock.advance(by: .seconds(10))
            await feed.tick()
        }
        #expect(feed.history.count == TrafficHistory.limit)
    }
}

@Suite struct MetricsRouteTests {
    @Test func everyFamilyHasHelpTypeAndBoundedLabels() async throws {
        let pool = try ScriptedEngine()
        let door = AdminDoor(pool)
        await pool.ask(.get, "/secret?token=planted")
        pool.goOffline()
        await pool.ask(.post, "/v1/notes", body: "{}")
        let answer = try await door.ask(.get, "/metrics", token: nil)
        #expect(answer.status == 200 && answer.fields[.contentType]?.hasPrefix("text/plain; version=0.0.4") == true)
        let lines = answer.text.split(separator: "\n")
        let typed = Set(lines.filter { $0.hasPrefix("# TYPE ") }.map { $0.split(separator: " ")[2] })
        let helped = Set(lines.filter { $0.hasPrefix("# HELP ") }.map { $0.split(separator: " ")[2] })
        #expect(typed == helped && typed.allSatisfy { $0.hasPrefix("rockpool_") || $0.hasPrefix("process_") })
        for line in lines where !line.hasPrefix("#") {
            let name = line.prefix { $0 != "{" && $0 != " " }
            let family = ["_bucket", "_sum", "_count"].reduce(String(name)) { $0.hasSuffix($1) ? String($0.dropLast($1.count)) : $0 }
            #expect(typed.contains(Substring(family)) || typed.contains(name), "\(line)")
        }
        #expect(lines.contains(#"rockpool_requests_total{verdict="queued"} 1"#))
        #expect(lines.contains(#"rockpool_outbox_operations{state="pending"} 1"#))
        #expect(lines.contains(#"rockpool_upstream_reachable{upstream="notes"} 0"#))
        #expect(!answer.text.contains("planted") && !answer.text.contains("/secret"))
    }
}
