// A refreshed token keeps the offline copies and operations of its identity; a forged token gets neither (docs/caching.md#partitions
// *Identity*, docs/reference/behaviour.md#identity).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct FoldingTests {
    static let first = Token.bearer("anna"), second = Token.bearer("anna", id: 2), forged = Token.bearer("anna", id: 666)

    /// Returns an engine that has read `/me` with anna's first token, so that her private copy is stored.
    private func pool(_ change: (inout Upstream) -> Void = { _ in }) async throws -> ScriptedEngine {
        let pool = try ScriptedEngine(upstreams: [.notes(change)]) {
            $0.head.fields[.authorization] == nil ? .status(401) : .ok("hers", [.cacheControl: "private, no-cache"])
        }
        #expect(await pool.ask(.get, "/me", [.authorization: Self.first]).body == "hers")
        return pool
    }

    private func later(_ pool: ScriptedEngine, _ upstreams: [Upstream]? = nil) -> Engine {
        var configuration = pool.engine.configuration
        if let upstreams { configuration.upstreams = upstreams }
        return Engine(
            configuration: configuration, cache: pool.store.cache, data: pool.store.data, origin: pool.origin, viaName: "later",
            logger: .silent, now: pool.clock.reading)
    }

    private func reads(_ pool: ScriptedEngine, _ token: String) async -> Bool {
        let reply = await pool.ask(.get, "/me", [.authorization: token])
        #expect(reply.status == (reply.body == "hers" ? 200 : 504))
        return reply.body == "hers"
    }

    // MARK: reads

    @Test func aTokenProvedOnlineReadsTheCopiesOfTheOneBefore() async throws {
        let pool = try await pool()
        await pool.ask(.get, "/other", [.authorization: Self.second])
        pool.goOffline()
        #expect(await reads(pool, Self.first))
        #expect(await reads(pool, Self.second))
        #expect(await !reads(pool, Self.forged))
        #expect(await !reads(pool, Token.bearer("bert")))
    }

    @Test func whatWasProvedIsKnownAfterARestartWithoutTheUpstream() async throws {
        let pool = try await pool()
        await pool.ask(.get, "/other", [.authorization: Self.second])
        let engine = later(pool)
        engine.reachability.record(.failed(.connectTimeout, detail: "connection_timeout"), for: "notes", now: pool.clock.now)
        for (token, status) in [(Self.first, 200), (Self.second, 200), (Self.forged, 504)] {
            let request = RequestHead(method: .get, origin: .notes, target: "/me", fields: [.authorization: token])
            #expect(await WholeReply(engine.respond(Exchange(request: request))).status == status)
        }
    }

    static let noProofs: [ScriptedAnswer] = [
        .status(401), .status(403), .status(404), .status(500), .status(302, [.location: "http://portal.test/"]), .refused, .lost,
        .ok("<p>Accept the terms", [.contentType: "text/html"]), .status(511), .ok("anyone's"),
        .ok("all", [.cacheControl: "public, max-age=9"]),
        .ok("all", [.cacheControl: "s-maxage=9"]), .status(304, [.cacheControl: "private"]),
    ]

    @Test(arguments: Self.noProofs.indices) func nothingElseProves(answer: Int) async throws {
        let pool = try await pool()
        pool.origin.next(Self.noProofs[answer])
        await pool.ask(.get, "/new", [.authorization: Self.forged])
        pool.goOffline()
        #expect(await !reads(pool, Self.forged))
    }

    @Test(arguments: [200, 201, 204]) func eachOfThemProves(status: Int) async throws {
        let pool = try await pool()
        pool.origin.next(.status(status, [.cacheControl: "private"]))
        await pool.ask(.get, "/new", [.authorization: Self.second, .ifNoneMatch: "\"a\""])
        pool.goOffline()
        #expect(await reads(pool, Self.second))
    }

    /// The place has refused another credential, or none, a moment before.
    @Test(arguments: [[:], [.authorization: "Bearer expired"]] as [HTTPFields]) func aPlaceThatRefusesOthersProves(
        other: HTTPFields
    ) async throws {
        let pool = try await pool()
        pool.origin.next(.status(401))
        await pool.ask(.get, "/new", other)
        pool.origin.next(.ok("hers"))
        await pool.ask(.get, "/new", [.authorization: Self.second])
        pool.goOffline()
        #expect(await reads(pool, Self.second))
        #expect(await !reads(pool, Self.forged))
    }

    /// What was stored under the token's own name goes along with its writes.
    @Test func itsEarlierCopiesGoAlong() async throws {
        let pool = try await pool()
        pool.origin.next(.ok("early", [.cacheControl: "max-age=60"]))
        await pool.ask(.get, "/early", [.authorization: Self.second])
        await pool.ask(.get, "/other", [.authorization: Self.second])
        pool.goOffline()
        for token in [Self.first, Self.second] { #expect(await pool.ask(.get, "/early", [.authorization: token]).body == "early") }
        #expect(await pool.ask(.get, "/early", [.authorization: Self.forged]).status == 504)
    }

    /// A cache hit is not a response of the upstream, so it proves no token.
    @Test func theCacheProvesNothing() async throws {
        let pool = try await pool()
        pool.origin.next(.ok("all", [.cacheControl: "public, max-age=60"]))
        await pool.ask(.get, "/all")
        let sent = pool.origin.sent.count
        #expect(await pool.ask(.get, "/all", [.authorization: Self.forged]).body == "all")
        #expect(pool.origin.sent.count == sent)
        pool.goOffline()
        #expect(await !reads(pool, Self.forged))
    }

    @Test(arguments: [
        (Token.bearer(nil), Token.bearer(nil, id: 2)), (Token.bearer("anna", issuer: "a"), Token.bearer("anna", issuer: "b")),
        ("Bearer opaque-1", "Bearer opaque-2"), ("Basic YTpi", "Basic Yjpi"),
    ])
    func whatClaimsNoOneOrAnotherStaysApart(one: String, other: String) async throws {
        let pool = try ScriptedEngine { _ in .ok("hers", [.cacheControl: "private, no-cache"]) }
        await pool.ask(.get, "/me", [.authorization: one])
        await pool.ask(.get, "/x", [.authorization: other])
        pool.goOffline()
        #expect(await reads(pool, one))
        #expect(await !reads(pool, other))
    }

    @Test func originsAreApartAndUndeclaredOnesFoldNothing() async throws {
        let elsewhere = OriginAddress(scheme: .http, host: "other.test"), undeclared = OriginAddress(scheme: .http, host: "wild.test")
        let pool = try ScriptedEngine(upstreams: [.notes(), Upstream(name: "other", origin: elsewhere)]) {
            $0.head.fields[.authorization] == nil ? .status(401) : .ok("", [.cacheControl: "private"])
        }
        var principals: [OriginAddress: Set<String>] = [:]
        for origin in [.notes, elsewhere, undeclared] {
            for token in [Self.first, Self.second] {
                await pool.ask(.get, "/", [.authorization: token], origin: origin)
                let head = RequestHead(method: .get, origin: origin, target: "/", fields: [.authorization: token])
                principals[origin, default: []].insert(pool.engine.credentials.identity(of: head, rule: .auto).principal ?? "")
            }
        }
        #expect(principals[.notes]?.count == 1 && principals[elsewhere]?.count == 1 && principals[undeclared]?.count == 2)
        #expect(principals.values.reduce(into: Set()) { $0.formUnion($1) }.count == 4)
    }

    // MARK: operations

    @Test func writesOfAnUnprovedTokenAreItsOwnUntilItIsProved() async throws {
        let pool = try await pool()
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: Self.first], body: "a")
        await pool.ask(.post, "/notes/1/x", [.authorization: Self.second], body: "b")
        let before = try await pool.operations()
        #expect(Set(before.map(\.principal)).count == 2)
        pool.comeOnline()
        await pool.ask(.get, "/other", [.authorization: Self.second])
        let after = try await pool.operations()
        #expect(Set(after.map(\.principal)) == [before[0].principal])
        #expect(after.allSatisfy { !$0.lane.contains(before[1].principal ?? "-") })
        #expect(await Replayer(engine: pool.engine).runOnce().delivered == 2)
        #expect(pool.origin.sent.suffix(2).allSatisfy { $0.head.fields[.authorization] == Self.second }, "the newest proved token")
    }

    /// A write may say itself who asks, as a login does: its answer may be due to that.
    @Test(arguments: [false, true]) func anAnswerToAWriteProvesNothing(isQueued: Bool) async throws {
        let pool = try await pool()
        if isQueued { pool.goOffline() }
        await pool.ask(.put, "/notes/1", [.authorization: Self.second], body: "a")
        if isQueued {
            pool.comeOnline()
            #expect(await Replayer(engine: pool.engine).runOnce().delivered == 1)
        }
        pool.goOffline()
        #expect(await !reads(pool, Self.second))
    }

    /// It is neither given up nor sent with her token.
    @Test func aWriteOfAnUnprovedTokenWaitsForItsOwn() async throws {
        let pool = try await pool()
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: Self.second], body: "a")
        pool.origin.answers { $0.head.method == .put ? .status(401) : .ok("hers") }
        pool.comeOnline()
        let replayer = Replayer(engine: pool.engine)
        _ = await replayer.runOnce()
        await pool.ask(.get, "/me", [.authorization: Self.first])
        _ = await replayer.runOnce()
        #expect(try await pool.operations(Set(OperationState.allCases)).map(\.state) == [.parked])
        pool.origin.answers { _ in .ok("hers") }
        await pool.ask(.get, "/public", [.authorization: Self.second])
        _ = await replayer.runOnce()
        #expect(try await pool.operations([.delivered]).count == 1)
        #expect(pool.origin.sent.filter { $0.head.method == .put }.allSatisfy { $0.head.fields[.authorization] == Self.second })
    }

    @Test func aForgedTokenSendsNothingOfHers() async throws {
        let pool = try await pool()
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: Self.first], body: "hers")
        await pool.ask(.put, "/notes/2", [.authorization: Self.forged], body: "forged")
        pool.origin.answers { $0.head.fields[.authorization] == Self.forged ? .status(401) : .ok() }
        pool.comeOnline()
        _ = await Replayer(engine: pool.engine).runOnce()
        for sent in pool.origin.sent where !sent.text.isEmpty {
            #expect(sent.head.fields[.authorization] == (sent.text == "hers" ? Self.first : Self.forged))
        }
        #expect(try await pool.operations(Set(OperationState.allCases)).map(\.state) == [.delivered, .parked])
    }

    // MARK: sealed

    private static func sealed(_ upstream: inout Upstream) { upstream.queue.credentials = .sealed }
    private var secret: String { String(Self.first.dropFirst(7)) }

    @Test(arguments: [QueueSettings.Credentials.memory, .sealed])
    func noSecretLiesOnTheDiskAndSealedOnesGoOn(credentials: QueueSettings.Credentials) async throws {
        let pool = try await pool { $0.queue.credentials = credentials }
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: Self.first], body: "planted")
        #expect(pool.store.stateFiles(holding: secret).isEmpty && !pool.store.stateFiles(holding: "planted").isEmpty)
        let engine = later(pool)
        #expect(await Replayer(engine: engine).runOnce().delivered == (credentials == .sealed ? 1 : 0))
        #expect(pool.origin.sent.last?.head.fields[.authorization] == Self.first)
        if credentials == .memory { #expect(try await pool.operations().map(\.reason) == [.auth]) }
    }

    @Test func whatIsNoLongerToBeSealedIsDeletedAtTheNextStart() async throws {
        let pool = try await pool(Self.sealed)
        _ = later(pool, [.notes()])
        let engine = later(pool)
        let head = RequestHead(method: .get, origin: .notes, target: "/", fields: [.authorization: Self.first])
        let principal = try #require(engine.credentials.identity(of: head, rule: .auto).principal)
        #expect(engine.credentials.live(of: principal) == nil)
        #expect(pool.engine.credentials.live(of: principal) != nil)
    }

    @Test func aRefusedCredentialIsUnsealed() async throws {
        let pool = try await pool(Self.sealed)
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: Self.first], body: "a")
        pool.origin.answers { _ in .status(401) }
        pool.comeOnline()
        _ = await Replayer(engine: pool.engine).runOnce()
        let sent = pool.origin.sent.count
        #expect(await Replayer(engine: later(pool)).runOnce().sent == 0)
        #expect(pool.origin.sent.count == sent)
    }

    @Test func aCredentialThatNothingUsesIsNotKept() async throws {
        let pool = try await pool(Self.sealed)
        pool.goOffline()
        await pool.ask(.put, "/notes/1", [.authorization: Self.first], body: "a")
        pool.clock.advance(by: .days(31))
        #expect(await Replayer(engine: later(pool)).runOnce().sent == 0)
    }
}
