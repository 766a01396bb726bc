// Reads through the whole engine: storing, serving from the store, and the cache's response fields (RFC 9111, 5861, 9211;
// docs/caching.md#overview).
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ReadTests {
    @Test func aMissIsStoredAndTheNextIsAHit() async throws {
        let pool = try ScriptedEngine()
        let miss = await pool.ask(.get, "/a")
        #expect(miss.body == "pearl" && miss.cacheStatus == "rockpool; fwd=uri-miss; stored")
        pool.clock.advance(by: .seconds(3))
        let hit = await pool.ask(.get, "/a")
        #expect(hit.status == 200 && hit.body == "pearl")
        #expect(hit["Age"] == "3" && hit.cacheStatus == "rockpool; hit; ttl=57")
        #expect(pool.origin.lines == ["GET /a"])
        #expect(pool.engine.statistics[.miss] == 1 && pool.engine.statistics[.hit] == 1)
    }

    @Test func everyReplyNamesUsInVia() async throws {
        let pool = try ScriptedEngine()
        for _ in 0..<2 { #expect(await pool.ask(.get, "/a")["Via"] == "1.1 pool") }
    }

    @Test(arguments: ["no-store", "max-age=0", "no-cache"])
    func withTheStandardPolicyNothingIsServedWithoutAsking(directive: String) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }], rule: { _ in .ok("x", [.cacheControl: directive]) })
        await pool.ask(.get, "/a")
        await pool.ask(.get, "/a")
        #expect(pool.origin.sent.count == 2)
    }

    /// A private cache: every client, with any credential, is the one user (RFC 9111 §1).
    @Test(arguments: ["max-age=60", "private, max-age=60"]) func theOnlyUserHasOnePartition(_ directives: String) async throws {
        let pool = try ScriptedEngine(
            upstreams: [.notes { $0.identity = .single }], rule: { _ in .ok("mine", [.cacheControl: directives]) })
        await pool.ask(.get, "/a", [.authorization: "Bearer one"])
        for fields in [[.authorization: "Bearer one"], [.authorization: "Bearer two"], [.cookie: "a=b"], [:]] as [HTTPFields] {
            #expect(await pool.ask(.get, "/a", fields).cacheStatus == "rockpool; hit; ttl=60", "\(fields)")
        }
        #expect(pool.origin.sent.count == 1)
    }

    /// RFC 9111 §4.1, §4.3.4, §7.3.
    /// Not even a 304 that is the first to vary by a secret writes its value into the store.
    @Test func a304ThatVariesByASecretStoresItsName() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        pool.origin.next(
            .ok("mine", [.cacheControl: "max-age=1", .eTag: "\"1\""]),
            .status(304, [.cacheControl: "max-age=60", .eTag: "\"1\"", .vary: "Cookie"]),
            .ok("other", [.cacheControl: "max-age=60", .vary: "Cookie"]))
        await pool.ask(.get, "/a", [.cookie: "sid=a-secret-value"])
        pool.clock.advance(by: .seconds(2))
        for _ in 0..<2 { #expect(await pool.ask(.get, "/a", [.cookie: "sid=a-secret-value"]).body == "mine") }
        #expect(pool.origin.sent.count == 2)
        #expect(await pool.ask(.get, "/a", [.cookie: "sid=b"]).body == "other")
        for suffix in ["", "-wal"] {
            let file = try Data(contentsOf: URL(fileURLWithPath: "\(pool.store.directory)/cache/cache.sqlite\(suffix)"))
            #expect(file.range(of: Data("a-secret-value".utf8)) == nil)
        }
    }

    @Test func a304ThatVariesAnewMakesTheStoredThatVariantAndItsCookieIsForWhoAsked() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        let foo = try #require(HTTPField.Name("Foo"))
        pool.origin.next(
            .ok("one", [.cacheControl: "max-age=1", .eTag: "\"1\""]),
            .status(304, [.cacheControl: "max-age=60", .eTag: "\"1\"", .vary: "Foo", .setCookie: "s=new"]),
            .ok("none", [.cacheControl: "max-age=60", .vary: "Foo"]))
        await pool.ask(.get, "/a", [foo: "1"])
        pool.clock.advance(by: .seconds(2))
        let validated = await pool.ask(.get, "/a", [foo: "1"])
        #expect(validated.body == "one" && validated["Set-Cookie"] == "s=new")
        let hit = await pool.ask(.get, "/a", [foo: "1"])
        #expect(hit.body == "one" && hit.cacheStatus == "rockpool; hit; ttl=60" && hit["Set-Cookie"] == nil)
        #expect(await pool.ask(.get, "/a").body == "none")
        #expect(await pool.ask(.get, "/a", [foo: "1"]).body == "one")
        #expect(pool.origin.sent.count == 3)
    }

    @Test func aBodyThatBrokeOffIsNotStored() async throws {
        let pool = try ScriptedEngine()
        let cut = TransferFailure(kind: .reset, sent: .yes, detail: "cut")
        pool.origin.next(.broken(ResponseHead(status: 200, fields: [.cacheControl: "max-age=60"]), ["pea"], cut))
        let broken = await pool.ask(.get, "/a")
        #expect(broken.body == "pea" && broken.failure == cut)
        #expect(try await pool.store.cache.usage().entries == 0)
        #expect(await pool.ask(.get, "/a").body == "pearl")
        #expect(pool.origin.sent.count == 2)
    }

    @Test(arguments: [(100_000, true), (1000, false)])
    func aClientThatLeavesEarlyEndsALongFetchAndNotAShortOne(length: Int64, isEnded: Bool) async throws {
        let pool = try ScriptedEngine()
        let feed = BodyPipe()
        let ear = BodyPipeTests.Ear(feed)
        pool.origin.next(.live(ResponseHead(status: 200, fields: [.cacheControl: "max-age=60"]), feed, length: length))
        let reply = await pool.engine.respond(Exchange(request: RequestHead(method: .get, origin: .notes, target: "/a")))
        guard case .stream(let body, _) = reply.body else { return #expect(Bool(false), "no stream") }
        feed.offer(ByteBuffer(string: "pea"))
        _ = try await body.next()
        body.abandon()
        #expect(ear.signals.contains(.abandoned) == isEnded)
        #expect(try await pool.store.cache.usage().entries == 0)
    }

    @Test func aLargeBodyGoesToAFileAndComesBackWhole() async throws {
        let large = String(repeating: "0123456789", count: 50_000)
        let pool = try ScriptedEngine(rule: { _ in .ok(large, [.cacheControl: "max-age=60", .contentType: "application/json"]) })
        await pool.ask(.get, "/a")
        #expect(await pool.ask(.get, "/a").body == large)
        #expect(pool.origin.sent.count == 1)
    }

    @Test func a304FreshensWhatIsStored() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(
            .ok("pearl", [.cacheControl: "max-age=10", .eTag: "\"v1\""]), .status(304, [.cacheControl: "max-age=100", .eTag: "\"v1\""]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(11))
        let revalidated = await pool.ask(.get, "/a")
        #expect(pool.origin.sent.last?.head.fields[.ifNoneMatch] == "\"v1\"")
        #expect(revalidated.status == 200 && revalidated.body == "pearl")
        #expect(revalidated.cacheStatus == "rockpool; fwd=stale; fwd-status=304")
        pool.clock.advance(by: .seconds(50))
        #expect(await pool.ask(.get, "/a").cacheStatus == "rockpool; hit; ttl=50")
        #expect(pool.engine.statistics[.revalidated] == 1)
    }

    @Test func aNewVersionReplacesTheStaleOne() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(
            .ok("old", [.cacheControl: "max-age=10", .eTag: "\"v1\""]), .ok("new", [.cacheControl: "max-age=10", .eTag: "\"v2\""]))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(11))
        #expect(await pool.ask(.get, "/a").body == "new")
        #expect(await pool.ask(.get, "/a").body == "new")
        #expect(pool.origin.sent.count == 2)
    }

    @Test func whileAwayTheStoredResponseStandsInAndSaysSo() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("pearl", [.cacheControl: "no-cache, private"]))
        await pool.ask(.get, "/a")
        pool.goOffline()
        pool.clock.advance(by: .minutes(1))
        let stale = await pool.ask(.get, "/a")
        #expect(stale.status == 200 && stale.body == "pearl" && stale["Age"] == "60")
        #expect(stale.cacheStatus?.contains("; hit;") == true && stale.cacheStatus?.hasSuffix("; detail=offline") == true)
        #expect(stale.proxyStatus == "rockpool; error=connection_timeout; next-hop=\"api.test:80\"")
        #expect(pool.origin.sent.count == 1 && pool.engine.statistics[.stale] == 1)
    }

    @Test func anUpstreamFoundAwayIsStoodInForAtOnce() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("pearl", [.cacheControl: "max-age=1"]), .refused)
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        let stale = await pool.ask(.get, "/a")
        #expect(stale.body == "pearl")
        #expect(stale.proxyStatus == "rockpool; error=connection_refused; next-hop=\"api.test:80\"")
        #expect(pool.engine.reachability.machine(of: "notes")?.state == .offline)
    }

    @Test func whatIsNotStoredIsA504WithoutSending() async throws {
        let pool = try ScriptedEngine()
        pool.goOffline()
        let miss = await pool.ask(.get, "/a")
        #expect(miss.status == 504 && miss["Content-Type"] == "application/problem+json")
        #expect(miss.json["type"] == "urn:rockpool:problem:offline-miss")
        #expect(miss.json["upstream"] == "notes" && miss.json["error"] == "connection_timeout")
        #expect(pool.origin.sent.isEmpty && pool.engine.statistics[.failed] == 1)
    }

    static let failures: [(ScriptedAnswer, Int, String)] = [
        (.refused, 504, "offline-miss"), (.badCertificate, 502, "upstream-error"), (.lost, 502, "upstream-error"),
        (.failure(TransferFailure(kind: .firstByteTimeout, sent: .yes)), 504, "upstream-timeout"),
        (.failure(TransferFailure(kind: .denied, sent: .no)), 403, "forbidden-target"),
        (.failure(TransferFailure(kind: .protocolError, sent: .yes)), 502, "upstream-error"),
    ]

    @Test(arguments: failures.indices)
    func failuresWithNothingStoredBecomeProblems(index: Int) async throws {
        let (failure, status, type) = Self.failures[index]
        let pool = try ScriptedEngine(rule: { _ in failure })
        let reply = await pool.ask(.get, "/a")
        #expect(reply.status == status && reply.json["type"] == .string("urn:rockpool:problem:\(type)"))
        #expect(reply.proxyStatus?.hasPrefix("rockpool; error=") == true)
    }

    @Test func aBadCertificateIsNeverStoodInFor() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("pearl", [.cacheControl: "max-age=1, stale-if-error=1000"]), .badCertificate)
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        let refused = await pool.ask(.get, "/a")
        #expect(refused.status == 502)
        #expect(refused.proxyStatus?.contains("tls_certificate_error") == true)
    }

    @Test(arguments: [(500, 100, 200), (500, 1000, 500), (404, 100, 404)])
    func staleIfErrorCoversServerErrorsWithinItsWindow(status: Int, after: Int, shown: Int) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.policy = .standard }])
        pool.origin.next(.ok("pearl", [.cacheControl: "max-age=1, stale-if-error=500"]), .status(status))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(Int64(after)))
        let reply = await pool.ask(.get, "/a")
        #expect(reply.status == shown)
        #expect((reply.cacheStatus?.contains("detail=stale-if-error") == true) == (shown == 200))
    }

    @Test func eachIdentityReadsItsOwn() async throws {
        let pool = try ScriptedEngine(rule: {
            .ok("of \($0.head.fields[.authorization] ?? "nobody")", [.cacheControl: "private, max-age=60"])
        })
        for _ in 0..<2 {
            for who in ["ann", "bob"] { #expect(await pool.ask(.get, "/me", [.authorization: who]).body == "of \(who)") }
        }
        #expect(await pool.ask(.get, "/me").body == "of nobody")
        #expect(pool.origin.sent.count == 3)
        pool.goOffline()
        #expect(await pool.ask(.get, "/me", [.authorization: "eve"]).status == 504, "no copy of another identity is served offline either")
    }

    /// An API may vary its responses by credential without declaring it. RFC 9111 allows a hit; for a declared upstream that is online, the
    /// request is sent upstream.
    @Test(arguments: [CachePolicy.offlineFirst, .standard]) func aCredentialIsAnsweredWithItsOwn(policy: CachePolicy) async throws {
        let pool = try ScriptedEngine(
            upstreams: [.notes { $0.policy = policy }],
            rule: { .ok("of \($0.head.fields[.authorization] ?? "nobody")", [.cacheControl: "max-age=60"]) })
        let anns = policy == .offlineFirst ? "of ann" : "of nobody"
        await pool.ask(.get, "/a")
        #expect(await pool.ask(.get, "/a", [.cookie: "a=b"]).body == "of nobody", "cookies accompany every request")
        for _ in 0..<2 { #expect(await pool.ask(.get, "/a", [.authorization: "ann"]).body == anns) }
        #expect(pool.origin.sent.count == (policy == .offlineFirst ? 2 : 1))
        pool.clock.advance(by: .seconds(5))
        await pool.ask(.get, "/a", [.cacheControl: "no-cache"])
        #expect(await pool.ask(.get, "/a", [.authorization: "ann"]).body == anns, "a newer copy without a credential does not hide it")
        pool.goOffline()
        #expect(await pool.ask(.get, "/a", [.authorization: "ann"]).body == anns)
        #expect(await pool.ask(.get, "/a", [.authorization: "bob"]).body == "of nobody", "offline, a copy without a credential is served")
    }

    @Test func whatIsPublicIsSharedByAll() async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("all", [.cacheControl: "public, max-age=60"]) })
        await pool.ask(.get, "/a", [.authorization: "ann"])
        #expect(await pool.ask(.get, "/a", [.authorization: "bob"]).body == "all")
        #expect(pool.origin.sent.count == 1)
    }

    @Test func variantsAreKeptApart() async throws {
        let pool = try ScriptedEngine(rule: {
            .ok($0.head.fields[.acceptLanguage] ?? "", [.cacheControl: "max-age=60", .vary: "Accept-Language"])
        })
        for language in ["de", "fr", "de", "fr"] { #expect(await pool.ask(.get, "/a", [.acceptLanguage: language]).body == language) }
        #expect(pool.origin.sent.count == 2)
    }

    /// Without a validator, the length alone decides (RFC 9111 §4.3.5).
    @Test(arguments: [("pearl", 2), ("another", 3)]) func aHeadTellsWhetherWhatIsStoredStillHolds(_ body: String, asked: Int) async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/a")
        pool.origin.next(.ok(body))
        await pool.ask(.head, "/a", [.cacheControl: "no-cache"])
        await pool.ask(.get, "/a")
        #expect(pool.origin.sent.count == asked)
    }

    @Test func aHeadIsAnsweredFromAStoredGet() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/a")
        let reply = await pool.engine.respond(Exchange(request: RequestHead(method: .head, origin: .notes, target: "/a")))
        guard case .none(let length) = reply.body else { return #expect(Bool(false), "a body") }
        #expect(reply.head.status == 200 && length == 5)
        #expect(pool.origin.sent.count == 1)
    }

    @Test(arguments: [("\"v1\"", 304), ("\"v0\", W/\"v1\"", 304), ("\"v2\"", 200), ("*", 304)])
    func theClientsOwnConditionIsAnsweredFromTheStore(condition: String, status: Int) async throws {
        let pool = try ScriptedEngine(rule: { _ in .ok("pearl", [.cacheControl: "max-age=60", .eTag: "\"v1\""]) })
        await pool.ask(.get, "/a")
        let reply = await pool.ask(.get, "/a", [.ifNoneMatch: condition])
        #expect(reply.status == status && reply.body == (status == 304 ? "" : "pearl"))
        #expect(reply["ETag"] == "\"v1\"" && pool.origin.sent.count == 1)
    }

    @Test func onlyIfCachedNeverSends() async throws {
        let pool = try ScriptedEngine()
        let wish: HTTPFields = [.cacheControl: "only-if-cached"]
        let miss = await pool.ask(.get, "/a", wish)
        #expect(miss.status == 504 && miss.json["type"] == "urn:rockpool:problem:only-if-cached")
        #expect(pool.origin.sent.isEmpty)
        await pool.ask(.get, "/a")
        #expect(await pool.ask(.get, "/a", wish).status == 200)
    }

    @Test func staleWhileRevalidateAnswersAtOnceAndRefreshesBehind() async throws {
        let pool = try ScriptedEngine()
        pool.origin.next(.ok("old", [.cacheControl: "max-age=1, stale-while-revalidate=100"]), .ok("new"))
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(10))
        let stale = await pool.ask(.get, "/a")
        #expect(stale.body == "old" && stale.cacheStatus == "rockpool; hit; ttl=-9; detail=stale-while-revalidate")
        try await eventually("the new one is stored") { await pool.ask(.get, "/a", [.cacheControl: "only-if-cached"]).body == "new" }
        #expect(pool.origin.sent.count == 2)
    }

    @Test(arguments: [(Bandwidth.leastBytes.bytes, 1), (Bandwidth.leastBytes.bytes - 1, 2)] as [(Int64, Int)])
    func aLargeBodyIsNotRefreshedBehindOverASlowWay(length: Int64, asked: Int) async throws {
        let body = String(repeating: "x", count: Int(length))
        let pool = try ScriptedEngine(rule: { _ in .ok(body, [.cacheControl: "max-age=1, stale-while-revalidate=100"]) })
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(10))
        pool.engine.reachability.record(100_000, in: .seconds(10), for: "notes", now: pool.clock.now)
        #expect(await pool.ask(.get, "/a").cacheStatus?.hasSuffix("detail=stale-while-revalidate") == true)
        try await eventually("no refresh under way") { pool.engine.refreshes == 0 }
        #expect(pool.origin.sent.count == asked)
    }

    @Test(arguments: [(Strategy.networkFirst, 2), (.cacheFirst, 1), (.cacheOnly, 0), (.networkOnly, 2), (.staleWhileRevalidate, 1)])
    func theStrategySaysHowOftenTheUpstreamIsAsked(strategy: Strategy, sent: Int) async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.routes = [Route(match: "/**", strategy: strategy)] }])
        let statuses = [await pool.ask(.get, "/a").status, await pool.ask(.get, "/a").status]
        #expect(pool.origin.sent.count == sent)
        #expect(statuses == (strategy == .cacheOnly ? [504, 504] : [200, 200]))
    }

    @Test func networkFirstFallsBackToTheStore() async throws {
        let pool = try ScriptedEngine(upstreams: [.notes { $0.routes = [Route(match: "/**", strategy: .networkFirst)] }])
        await pool.ask(.get, "/a")
        pool.origin.next(.refused)
        #expect(await pool.ask(.get, "/a").body == "pearl")
    }

    @Test(arguments: [(204, true), (500, false), (404, true)])
    func aWriteThatTookEffectInvalidatesWhatItTouches(status: Int, isGone: Bool) async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/a")
        pool.origin.next(.status(status))
        await pool.ask(.put, "/a", body: "x")
        await pool.ask(.get, "/a")
        #expect(pool.origin.lines == (isGone ? ["GET /a", "PUT /a", "GET /a"] : ["GET /a", "PUT /a"]))
    }

    @Test func whatAWriteInvalidatedIsStillThereOffline() async throws {
        let pool = try ScriptedEngine()
        await pool.ask(.get, "/a")
        await pool.ask(.put, "/a", body: "x")
        pool.goOffline()
        let offline = await pool.ask(.get, "/a")
        #expect(offline.status == 200 && offline.body == "x" && offline["Cache-Status"]?.contains("detail=offline") == true)
    }

    @Test func aReadWithABodyIsPassedThroughAndNotStored() async throws {
        let pool = try ScriptedEngine()
        for _ in 0..<2 { await pool.ask(.get, "/a", body: "query") }
        #expect(pool.origin.sent.map(\.text) == ["query", "query"])
    }

    /// Contract §3: Rockpool's own fields are removed from upstream requests, whatever the method.
    @Test(arguments: [HTTPRequest.Method.get, .head, .post])
    func ourOwnFieldsNeverReachTheUpstream(method: HTTPRequest.Method) async throws {
        let pool = try ScriptedEngine()
        let policy = try #require(HTTPField.Name("Rockpool-Policy"))
        await pool.ask(method, "/a", [policy: "queue", .accept: "a/b"])
        let fields = try #require(pool.origin.sent.first?.head.fields)
        #expect(fields[policy] == nil && fields[.accept] == "a/b")
    }

    @Test(arguments: [("0", [] as [String], 200), ("1", ["0"], 200), ("x", [], 400)])
    func maxForwardsOfOptionsIsCounted(value: String, sent: [String], status: Int) async throws {
        let pool = try ScriptedEngine()
        #expect(await pool.ask(.options, "/a", [.maxForwards: value]).status == status)
        #expect(pool.origin.sent.map { $0.head.fields[.maxForwards] } == sent)
    }

    /// Many clients validate one copy at the same time. What one of them stores meanwhile, by a 304 or anew, is not in the replies to others.
    @Test(arguments: [200, 304]) func aValidationHasNoFieldsOfAnother(status: Int) async throws {
        let viewer = try #require(HTTPField.Name("X-Viewer"))
        let fields: HTTPFields = [.cacheControl: "public, no-cache", .eTag: "\"v1\""]
        func answer(_ status: Int, to client: String) -> ScriptedAnswer {
            var fields = fields
            fields[viewer] = client
            return .status(status, fields, status == 200 ? "pearl" : "")
        }
        let (pool, gate) = (try ScriptedEngine(), Gate())
        pool.origin.next(answer(200, to: "one"))
        await pool.ask(.get, "/a", [.authorization: "one"])
        pool.origin.next(.held(gate, .status(304, fields)))
        async let validated = pool.ask(.get, "/a", [.authorization: "two"])
        try await eventually("the copy is being validated") { pool.origin.sent.count == 2 }
        pool.origin.next(answer(status, to: "three"))
        let other = await pool.ask(.get, "/a", [.authorization: "three"])
        #expect(other["X-Viewer"] == "three" && other.body == "pearl")
        gate.open()
        let reply = await validated
        #expect(reply["X-Viewer"] == "one" && reply.body == "pearl" && reply.cacheStatus?.contains("fwd-status=304") == true)
        #expect(pool.origin.sent.count == 3)
    }

    @Test func aProvedCredentialIsTold() async throws {
        let pool = try ScriptedEngine()
        let told = Told(pool.engine.events)
        pool.origin.next(.status(401), .ok(), .ok("", [.cacheControl: "private"]))
        for (place, count) in [("/a", 0), ("/b", 0), ("/c", 1)] {
            await pool.ask(.get, place, [.authorization: "ann"])
            #expect(told.credentials == count)
        }
    }

    @Test func anUndeclaredHostFollowsTheRFCAlone() async throws {
        let pool = try ScriptedEngine(upstreams: [])
        pool.origin.next(.ok("pearl", [.cacheControl: "max-age=1, must-revalidate"]), .refused)
        await pool.ask(.get, "/a")
        pool.clock.advance(by: .seconds(5))
        #expect(await pool.ask(.get, "/a").status == 504)
    }
}
