// Prefetching, and the explanation of how a request would be answered (docs/reference/admin-api.md#prefetch).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct PrefetchTests {
    private static let base = "http://api.test"

    @Test func itIsThereOffline() async throws {
        let pool = try ScriptedEngine()
        let urls = (0..<10).map { "\(Self.base)/\($0)" }
        let outcomes = await pool.engine.prefetch(urls)
        #expect(outcomes.map(\.url) == urls && outcomes.allSatisfy { $0.isStored && $0.status == 200 && $0.bytes == 5 && $0.reason == nil })
        pool.goOffline()
        pool.clock.advance(by: .hours(1))
        #expect(await pool.ask(.get, "/7").body == "pearl")
        #expect(pool.origin.sent.count == 10)
    }

    @Test func whatIsFreshIsNotFetchedAgain() async throws {
        let pool = try ScriptedEngine()
        for _ in 0..<2 { #expect(await pool.engine.prefetch(["\(Self.base)/a"]).first?.isStored == true) }
        #expect(pool.origin.lines == ["GET /a"])
    }

    @Test func itSaysWhyNot() async throws {
        let pool = try ScriptedEngine(rule: { sent in
            switch sent.head.target {
            case "/secret": .ok("x", [.cacheControl: "no-store"])
            case "/cut":
                .broken(
                    ResponseHead(status: 200, fields: [.cacheControl: "max-age=9"]), ["x"], .init(kind: .reset, sent: .yes, detail: "cut"))
            default: .refused
            }
        })
        // One after the other: a refused connection makes the upstream unreachable for all that follow.
        var outcomes: [Prefetched] = []
        for url in ["\(Self.base)/secret", "\(Self.base)/cut", "\(Self.base)/away", "nonsense"] {
            outcomes += await pool.engine.prefetch([url])
        }
        #expect(outcomes.map(\.status) == [200, 200, 504, nil])
        #expect(outcomes.map(\.reason) == ["no-store", "cut", "offline-miss", "the target is neither a path nor an absolute URI"])
        #expect(outcomes.allSatisfy { !$0.isStored })
    }

    @Test func aSlowWayIsLeftToThoseWhoWait() async throws {
        let pool = try ScriptedEngine()
        _ = await pool.engine.prefetch(["\(Self.base)/old"])
        pool.engine.reachability.record(100_000, in: .seconds(10), for: "notes", now: pool.clock.now)
        let outcomes = await pool.engine.prefetch(["\(Self.base)/old", "\(Self.base)/new"], pin: true)
        #expect(outcomes.map(\.isStored) == [true, false] && outcomes.first?.isPinned == true)
        #expect(outcomes.map(\.reason) == [nil, "the way to notes is too slow for it now"])
        #expect(await pool.ask(.get, "/new").status == 200)
    }

    @Test func itsFieldsSelectAndItsPinHolds() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("x", [.cacheControl: "max-age=60", .vary: "Accept-Language"]) })
        let outcome = await pool.engine.prefetch(["\(Self.base)/a"], fields: [.acceptLanguage: "de", .connection: "close"], pin: true)
        #expect(outcome.first?.isPinned == true)
        #expect(await pool.ask(.get, "/a", [.acceptLanguage: "de"]).cacheStatus?.hasPrefix("rockpool; hit") == true)
        #expect(pool.origin.sent.first?.head.fields[.via] == "1.1 pool" && pool.origin.sent.first?.head.fields[.connection] == nil)
        #expect(pool.origin.sent.first?.head.fields[.userAgent] == "rockpool")
        #expect(try await pool.store.cache.usage().pinnedBytes > 0)
    }

    @Test func anExplanationShowsTheArithmetic() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(20))
        let fresh = await pool.engine.explainer.explain(try RequestHead(url: "\(Self.base)/a"))
        #expect(fresh["decision"]?.string == "fresh" && fresh["reason"]?.string == "max-age")
        let arithmetic = fresh["arithmetic"]
        #expect(arithmetic?["freshnessLifetime"] == 60 && arithmetic?["currentAge"] == 20 && arithmetic?["remaining"] == 40)
        #expect(fresh["policy"]?.string == "offline-first" && fresh["reachability"]?.string == "online")
        #expect(fresh["variants"]?.array?.count == 1 && fresh["key"]?.string?.contains("/a") == true)
        pool.clock.advance(by: .seconds(60))
        #expect(await pool.engine.explainer.explain(try RequestHead(url: "\(Self.base)/a"))["decision"]?.string == "validate")
        pool.goOffline()
        let offline = await pool.engine.explainer.explain(try RequestHead(url: "\(Self.base)/a"))
        #expect(offline["decision"]?.string == "stale" && offline["reason"]?.string == "offline")
        let miss = await pool.engine.explainer.explain(try RequestHead(url: "\(Self.base)/b"))
        #expect(miss["decision"]?.string == "forward" && miss["reason"]?.string == "uri-miss" && miss["arithmetic"]?.isNull == true)
        #expect(pool.origin.sent.count == 1 && pool.engine.statistics.total == 1)
    }

    @Test func anExplanationTellsNoSecret() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("mine", [.cacheControl: "private, max-age=60", .vary: "Authorization"]) })
        let fields: HTTPFields = [.authorization: "Bearer s3cret"]
        await pool.ask(.get, "/a", fields)
        let own = await pool.engine.explainer.explain(try RequestHead(url: "\(Self.base)/a", fields: fields))
        #expect(own["decision"]?.string == "fresh" && own["vary"] == ["Authorization"])
        #expect(own["variants"]?.array?.first?["requestFields"]?.array?.first?["value"]?.string == "(hidden)")
        #expect(!String(decoding: own.serialized(), as: UTF8.self).contains("s3cret"))
        let others = await pool.engine.explainer.explain(try RequestHead(url: "\(Self.base)/a", fields: [.authorization: "Bearer other"]))
        #expect(others["decision"]?.string == "forward" && others["variants"]?.array?.isEmpty == true)
    }
}
