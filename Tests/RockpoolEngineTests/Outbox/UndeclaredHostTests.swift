// Writes to undeclared hosts under `defaults.queue_writes` (docs/reference/configuration.md#defaults): queued, probed for and delivered
// like others.
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct UndeclaredHostTests {
    private static let elsewhere = OriginAddress(scheme: .http, host: "elsewhere.test", port: 8080)
    private static let name = "http://elsewhere.test:8080"

    private func pool(queueing: Bool = true, allow: [String] = []) throws -> ScriptedEngine {
        try ScriptedEngine(rule: { _ in .refused }) {
            $0.defaults.queueWrites = queueing
            $0.proxy.allow = allow
        }
    }

    @Test func onlyWhereAskedFor() async throws {
        let pool = try pool(queueing: false)
        let reply = await pool.ask(.put, "/a", body: "x", origin: Self.elsewhere)
        #expect(reply.status == 502)
        #expect(try await pool.operations().isEmpty && pool.engine.routes.adopted.isEmpty)
    }

    @Test func aWriteIsKeptAndDeliveredOnceItsHostIsBack() async throws {
        let pool = try pool()
        let reply = await pool.ask(.put, "/a", body: "x", origin: Self.elsewhere)
        #expect(reply.status == 202 && pool.engine.routes.adopted.map(\.name) == [Self.name])
        let operation = try #require(try await pool.operations().first)
        #expect(operation.upstream == Self.name && operation.request.url == "\(Self.name)/a")

        // The replay finds the host offline as well; from then on it is probed and receives no other request.
        let replayer = Replayer(engine: pool.engine)
        await replayer.runOnce()
        #expect(pool.engine.reachability.machine(of: Self.name)?.state == .offline)
        pool.origin.answers { _ in .status(204) }
        pool.clock.advance(by: .minutes(5))
        #expect(await Prober(engine: pool.engine, replayer: replayer).runOnce().contains(Self.name))
        await replayer.runOnce()
        #expect(try await pool.operations(Set(OperationState.allCases)).first?.state == .delivered)
        #expect(pool.origin.lines.suffix(2) == ["HEAD /", "PUT /a"])
    }

    @Test func anotherStartKnowsWhatIsWaitedFor() async throws {
        let pool = try pool()
        await pool.ask(.put, "/a", body: "x", origin: Self.elsewhere)
        // Queued writes are delivered even under a configuration that no longer accepts such writes.
        let engine = Engine(
            configuration: Configuration(), cache: pool.store.cache, data: pool.store.data, origin: pool.origin, viaName: "again",
            logger: .silent, now: pool.clock.reading, steady: pool.clock.steady)
        #expect(engine.routes.adopted.isEmpty)
        pool.origin.answers { _ in .status(204) }
        await Replayer(engine: engine).runOnce()
        #expect(engine.routes.adopted.map(\.name) == [Self.name])
        #expect(try await pool.operations(Set(OperationState.allCases)).first?.state == .delivered)
    }

    @Test func aReloadForgetsNone() async throws {
        let pool = try pool()
        await pool.ask(.put, "/a", body: "x", origin: Self.elsewhere)
        pool.engine.reconfigure(Configuration())
        #expect(pool.engine.routes.upstreams.map(\.name) == [Self.name])
        #expect(pool.engine.reachability.machine(of: Self.name) != nil)
    }

    /// Declared upstreams and clients of this machine may use loopback. A later replay may belong to a client of another machine, so it
    /// must not reach loopback (docs/security-model.md#addresses).
    @Test(arguments: [([], true), (["10.0.0.0/8"], false)] as [([String], Bool)])
    func whatIsSentLaterMayGoToThisMachineOnlyWhereAllClientsAreOfIt(allow: [String], isAllowed: Bool) async throws {
        let pool = try pool(allow: allow)
        await pool.ask(.put, "/a", [.prefer: "respond-async"], body: "x", origin: Self.elsewhere)
        await Replayer(engine: pool.engine).runOnce()
        #expect(pool.origin.sent.map(\.allowsLoopback) == [isAllowed])
    }

    @Test func asManyAsTheLimitAndNoMore() async throws {
        let pool = try pool()
        for number in 1...OutboxNotifier.adoptedLimit {
            let host = OriginAddress(scheme: .http, host: "h\(number).test")
            let reply = await pool.ask(.put, "/a", [.prefer: "respond-async"], body: "x", origin: host)
            #expect(reply.status == 202)
        }
        let refused = await pool.ask(.put, "/a", body: "x", origin: Self.elsewhere)
        #expect(refused.status == 503 && refused.body.contains("declare this one"))
        // A host without pending operations is dropped to free a place.
        let first = try #require(try await pool.operations().last)
        _ = try await pool.engine.commands.steer(.discard, id: first.id)
        let taken = await pool.ask(.put, "/a", body: "x", origin: Self.elsewhere)
        #expect(taken.status == 202 && pool.engine.routes.adopted.count == OutboxNotifier.adoptedLimit)
        #expect(!pool.engine.routes.adopted.contains { $0.name == first.upstream })
    }
}
