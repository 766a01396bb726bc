// The queue share to which a write is charged, depending on its client (docs/reference/behaviour.md#shares *queue shares*).
import HTTPTypes
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ShareTests {
    /// Returns an engine with an upstream that refuses a bad credential.
    private func pool() throws -> ScriptedEngine {
        try ScriptedEngine { ["Bearer good", nil].contains($0.head.fields[.authorization]) ? Self.personal : .status(401) }
    }

    /// An answer that depends on who asks.
    private static let personal = ScriptedAnswer.ok("", [.cacheControl: "private"])

    private func unproved(_ pool: ScriptedEngine) async throws -> [Bool] { try await pool.operations().map(\.isUnproved) }

    @Test func whoIsUnprovedIsToldByWhatTheUpstreamHasAccepted() async throws {
        let pool = try pool()
        await pool.ask(.get, "/a")
        await pool.ask(.get, "/b", [.authorization: "Bearer bad"])
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "x")
        await pool.ask(.put, "/notes/2", [.authorization: "Bearer bad"], body: "x")
        #expect(try await unproved(pool) == [false, true], "no response has shown yet that this upstream takes credentials")
        pool.comeOnline()
        await pool.ask(.get, "/c", [.authorization: "Bearer good"])
        pool.goOffline()
        await pool.ask(.put, "/notes/3", [.authorization: "Bearer good"], body: "x")
        await pool.ask(.put, "/notes/4", body: "x")
        #expect(try await unproved(pool) == [true, true, false, true])
        pool.comeOnline()
        pool.origin.answers { _ in .ok() }
        await pool.ask(.get, "/d", [.authorization: "Bearer bad"])
        #expect(try await unproved(pool) == [true, true, false, true], "anyone may be answered so")
        pool.origin.answers { _ in Self.personal }
        await pool.ask(.get, "/e", [.authorization: "Bearer bad"])
        #expect(try await unproved(pool) == [true, false, false, true])
    }

    @Test func anUndeclaredHostHasNoWritersOfItsOwn() async throws {
        let pool = try ScriptedEngine(upstreams: [], rule: { _ in .refused }, configure: { $0.defaults.queueWrites = true })
        #expect(await pool.ask(.put, "/notes/1", body: "x").status == 202)
        #expect(try await unproved(pool) == [true])
    }

    @Test func aRefusalNamesTheShareAndOthersGoOn() async throws {
        let pool = try pool()
        await pool.ask(.get, "/a", [.authorization: "Bearer good"])
        pool.goOffline()
        let body = String(repeating: "x", count: 1 << 20)
        var replies: [WholeReply] = []
        for n in 0..<9 { replies.append(await pool.ask(.put, "/notes/\(n)", body: body)) }
        #expect(
            replies.map(\.status) == Array(repeating: 202, count: 5) + Array(repeating: 507, count: 4), "12% of what is usable of 64 MB")
        let refused = try #require(replies.last)
        #expect(refused.json["type"] == "urn:rockpool:problem:outbox-full")
        #expect(refused.json["detail"]?.string?.contains("storage.unproved_share") == true, "\(refused.body)")
        #expect(await pool.ask(.put, "/notes/9", [.authorization: "Bearer good"], body: body).status == 202)
        #expect(try await pool.operations().count == 6)
    }

    @Test func whatIsPurgedWhileItIsOpenIsTold() async throws {
        let pool = try pool()
        await pool.ask(.get, "/a", [.authorization: "Bearer good"])
        pool.goOffline()
        await pool.ask(.put, "/notes/1", body: "x")
        pool.origin.answers { _ in .status(401) }
        pool.comeOnline()
        _ = await Replayer(engine: pool.engine).runOnce()
        #expect(try await pool.operations().map(\.state) == [.dead])
        let told = Told(pool.engine.events)
        pool.clock.advance(by: .hours(24))
        let report = await Cleaner(engine: pool.engine).runOnce(.init())
        #expect(report.operations.purged == 1 && told.states == [.cancelled])
        #expect(try await pool.operations().isEmpty)
    }
}
