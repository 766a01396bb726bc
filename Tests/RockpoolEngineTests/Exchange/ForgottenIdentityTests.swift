// A client that logs out is forgotten: its copies, its credential, not its waiting writes (docs/outbox.md#forgotten).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ForgottenIdentityTests {
    private static let anna: HTTPFields = [.authorization: Token.bearer("anna")]
    private static let bert: HTTPFields = [.authorization: Token.bearer("bert")]

    /// Returns an engine that has read `/me` as anna and as bert.
    private func pool(_ match: String = "POST /logout", _ change: (inout Upstream) -> Void = { _ in }) async throws -> ScriptedEngine {
        let upstream = Upstream.notes {
            $0.routes = [Route(match: match)]
            $0.routes[0].logout = true
            change(&$0)
        }
        let pool = try ScriptedEngine(upstreams: [upstream]) {
            $0.head.fields[.authorization] == nil ? .status(401) : .ok("hers", [.cacheControl: "private, max-age=60"])
        }
        for fields in [Self.anna, Self.bert] { #expect(await pool.ask(.get, "/me", fields).body == "hers") }
        return pool
    }

    private func reads(_ pool: ScriptedEngine, _ fields: HTTPFields) async -> Bool {
        pool.goOffline()
        defer { pool.comeOnline() }
        return await pool.ask(.get, "/me", fields).status == 200
    }

    @Test(arguments: [200, 204, 302, 303]) func aLogoutForgetsItsIdentityAlone(_ status: Int) async throws {
        let pool = try await pool()
        pool.origin.next(.status(status, [.location: "/"]))
        #expect(await pool.ask(.post, "/logout", Self.anna).status == status)
        #expect(await !reads(pool, Self.anna))
        #expect(await reads(pool, Self.bert))
        let known = try await pool.engine.identities.list()
        #expect(known.count == 1 && known[0].hasCredential && known[0].entries == 1 && known[0].upstreams == ["notes"], "\(known)")
    }

    @Test(arguments: [401, 500]) func aFailedLogoutForgetsNothing(_ status: Int) async throws {
        let pool = try await pool()
        pool.origin.next(.status(status))
        #expect(await pool.ask(.post, "/logout", Self.anna).status == status)
        #expect(await reads(pool, Self.anna))
    }

    @Test func aLogoutByGetIsSentEachTime() async throws {
        let pool = try await pool("GET /logout")
        for _ in 0..<2 { await pool.ask(.get, "/logout", Self.anna) }
        #expect(pool.origin.sent.count { $0.head.path == "/logout" } == 2)
        #expect(await !reads(pool, Self.anna))
    }

    @Test(arguments: [200, 302]) func aQueuedLogoutForgetsWhenItIsDelivered(_ status: Int) async throws {
        let pool = try await pool()
        pool.goOffline()
        #expect(await pool.ask(.post, "/logout", Self.anna).status == 202)
        #expect(await pool.ask(.get, "/me", Self.anna).status == 200)
        pool.origin.next(.status(status, [.location: "/login"]))
        pool.comeOnline()
        _ = await Replayer(engine: pool.engine).runOnce()
        #expect(await !reads(pool, Self.anna))
    }

    @Test func waitingWritesParkAndGoOnWithTheNextSession() async throws {
        let pool = try await pool()
        pool.goOffline()
        #expect(await pool.ask(.put, "/notes/1", Self.anna, body: "x").status == 202)
        let id = try #require(try await pool.engine.identities.list().first { $0.waiting == 1 }?.name)
        let forgotten = try await pool.engine.identities.forget(id)
        #expect(forgotten.hadCredential && forgotten.copies == 1)
        pool.comeOnline()
        let replayer = Replayer(engine: pool.engine)
        _ = await replayer.runOnce()
        var operation = try #require(try await pool.operations(Set(OperationState.allCases)).first)
        #expect(operation.state == .parked && operation.reason == .auth)
        #expect(await pool.ask(.get, "/other", [.authorization: Token.bearer("anna", id: 2)]).status == 200)
        _ = await replayer.runOnce()
        operation = try #require(try await pool.operations(Set(OperationState.allCases)).first)
        #expect(operation.state == .delivered)
    }

    @Test func waitingWritesAreDiscardedOnDemand() async throws {
        let pool = try await pool()
        pool.goOffline()
        for n in 0..<3 { await pool.ask(.put, "/notes/\(n)", Self.anna, body: "x") }
        await pool.ask(.put, "/notes/9", Self.bert, body: "x")
        let id = try #require(try await pool.engine.identities.list().first { $0.waiting == 3 }?.name)
        let result = try await pool.engine.commands.discardWrites(of: id)
        #expect(result.dropped == 3 && result.waiting == 0)
        let states = try await pool.operations(Set(OperationState.allCases)).map(\.state)
        #expect(states.count { $0 == .cancelled } == 3 && states.count { $0 == .pending } == 1)
    }

    @Test func theOnlyUserIsForgottenAtThisUpstream() async throws {
        let pool = try await pool { $0.identity = .single }
        #expect(await pool.ask(.post, "/logout", Self.anna).status == 200)
        #expect(await !reads(pool, Self.anna))
        #expect(await !reads(pool, [:]))
    }

    @Test func aResponseThatWasRequestedBeforeIsNotStored() async throws {
        let pool = try await pool()
        let key = CacheKey(RequestHead(method: .get, origin: .notes, target: "/late"), identity: "someone")
        let response = StoredResponse(
            head: ResponseHead(status: 200, fields: [.cacheControl: "max-age=60"]), requestTime: pool.clock.now,
            responseTime: pool.clock.now, category: "important")
        pool.clock.advance(by: .seconds(1))
        _ = try await pool.store.cache.forget(.identity("someone"))
        await #expect(throws: (any Error).self) {
            _ = try await pool.store.cache.replace(key, by: response, body: ByteBuffer(string: "late"), category: .important)
        }
        #expect(try await pool.store.cache.copiesByIdentity().allSatisfy { $0.identity != "someone" })
    }
}
