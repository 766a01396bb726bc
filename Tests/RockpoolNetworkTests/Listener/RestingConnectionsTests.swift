// Idle connections without a channel: nothing that a client can see changes (docs/security-model.md#idle-connections).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(2)), .serialized)
struct RestingConnectionsTests {
    private func get(_ path: String = "/a") -> String { "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n" }

    private func awaitRest(_ count: Int = 1, in pool: Pool) async throws {
        try await eventually("\(count) rest", within: .seconds(20)) { pool.listeners.resting.count == count }
    }

    @Test func aConnectionGoesOnAfterEachRest() async throws {
        let pool = try await Pool(rule: { .ok($0.head.target, [.cacheControl: "no-store"]) })
        let client = try await pool.connect()
        for number in 0..<2 {
            try await awaitRest(in: pool)
            #expect(pool.listeners.connections.count == 1)
            try await client.send(get("/\(number)") + get("/\(number)b"))
            #expect(try await client.response().body == "/\(number)")
            #expect(try await client.response().body == "/\(number)b")
        }
        try await awaitRest(in: pool)
        await client.close()
        try await eventually("it is gone") { pool.listeners.connections.count == 0 && pool.listeners.resting.count == 0 }
    }

    /// A client that asks at intervals keeps its channel, after the first one.
    @Test func aClientThatAsksAtIntervalsRestsOnce() async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        for _ in 0..<3 {
            try await client.send(get())
            #expect(try await client.response().head.status == 200)
            if pool.listeners.resting.count == 0 { try await Task.sleep(for: .milliseconds(1500)) }
        }
        #expect(pool.listeners.resting.count == 0)
        try await awaitRest(in: pool)
    }

    @Test func manyWakeAtOnce() async throws {
        let pool = try await Pool(rule: { .ok($0.head.target, [.cacheControl: "no-store"]) })
        var clients: [RawConnection] = []
        for _ in 0..<100 { clients.append(try await pool.connect()) }
        try await awaitRest(100, in: pool)
        for (number, client) in clients.enumerated() { try await client.send(get("/\(number)")) }
        for (number, client) in clients.enumerated() { #expect(try await client.response().body == "/\(number)") }
    }

    /// A head that was begun, and a body that is awaited, keep their connection.
    @Test func whatWasBegunIsKept() async throws {
        let pool = try await Pool(rule: { .ok($0.head.target, [.cacheControl: "no-store"]) })
        let parts = [
            ("GET /a HTTP/1.1\r\nHo", "st: localhost\r\n\r\n"), ("PRI * HT", "TP/1.1\r\nHost: localhost\r\n\r\n"),
            ("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab", "cd"),
        ]
        for (first, rest) in parts {
            let client = try await pool.connect()
            try await client.send(first)
            try await Task.sleep(for: .milliseconds(1500))
            #expect(pool.listeners.resting.count == 0, "\(first)")
            try await client.send(rest)
            let status = try await client.response().head.status
            #expect(first.hasPrefix("PRI") ? status >= 400 : status == 200, "\(first)")
            await client.close()
        }
    }

    @Test func anUnreadReplyIsSentWhole() async throws {
        let size = 12 * 1024 * 1024
        let pool = try await Pool(rule: { _ in .ok(String(repeating: "x", count: size), [.cacheControl: "no-store"]) })
        let client = try await pool.connect(isSlow: true)
        try await client.send(get())
        try await Task.sleep(for: .seconds(2))
        #expect(pool.listeners.resting.count == 0)
        var received = 0
        while received < size, let more = try await client.take() { received += more }
        #expect(received > size)
    }

    @Test func theIdleLimitHolds() async throws {
        let pool = try await Pool { $0.proxy.timeouts.idle = .seconds(2) }
        let client = try await pool.connect()
        try await awaitRest(in: pool)
        let began = ContinuousClock.now
        #expect(try await client.readToEnd(within: .seconds(10)) == "")
        #expect(ContinuousClock.now - began < .seconds(6))
        #expect(pool.listeners.connections.count == 0)
    }

    @Test func atTheLimitOneThatRestsMakesRoom() async throws {
        let pool = try await Pool { $0.proxy.limits.connections = 2 }
        let first = try await pool.connect()
        // Each connection may be another loop's, so their order is not that of the clients.
        try await awaitRest(1, in: pool)
        let second = try await pool.connect()
        try await awaitRest(2, in: pool)
        let third = try await pool.connect()
        try await third.send(get())
        #expect(try await third.response().head.status == 200)
        #expect(try await first.readToEnd() == "")
        try await second.send(get())
        #expect(try await second.response().head.status == 200)
    }

    @Test func requestsAreCountedAcrossRests() async throws {
        let pool = try await Pool { $0.proxy.limits.requestsPerConnection = 3 }
        let client = try await pool.connect()
        try await client.send(get())
        #expect(try await client.response().head["connection"] == nil)
        try await awaitRest(in: pool)
        try await client.send(get() + get())
        #expect(try await client.response().head["connection"] == nil)
        #expect(try await client.response().head["connection"] == "close")
        #expect(try await client.readToEnd() == "")
    }

    /// HTTP/2 may begin late, but not behind a request of HTTP/1.
    @Test func aPrefaceCountsOnlyAtTheBeginning() async throws {
        let pool = try await Pool()
        let late = try await pool.connect()
        try await awaitRest(in: pool)
        try await late.send(RawFrame.preface)
        _ = try await late.frame(.settings)
        let used = try await pool.connect()
        try await used.send(get())
        _ = try await used.response()
        try await awaitRest(in: pool)
        try await used.send(RawFrame.preface)
        #expect(try await used.response().head.status >= 400)
    }

    @Test func aDrainClosesWhatRests() async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        try await awaitRest(in: pool)
        let began = ContinuousClock.now
        await pool.listeners.drain(within: .seconds(20))
        #expect(ContinuousClock.now - began < .seconds(5))
        #expect(try await client.readToEnd() == "")
    }
}
