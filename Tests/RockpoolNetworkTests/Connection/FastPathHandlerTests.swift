// Hot hits: the same bytes as on the full path, served only while nothing has changed that the response depends on
// (docs/architecture.md#parts).
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct HotPathTests {
    private static let get = "GET /a HTTP/1.1\r\nHost: localhost\r\nUser-Agent: t\r\n\r\n"

    /// Returns a connection over which `/a` has become hot.
    private func warm(_ pool: Pool, _ request: String = get) async throws -> RawConnection {
        let client = try await pool.connect()
        for _ in 0..<2 { _ = try await whole(client, request) }
        try await eventually("a hot reply") {
            let before = pool.engine.statistics.hotHits
            _ = try await whole(client, request)
            return pool.engine.statistics.hotHits > before
        }
        return client
    }

    /// Sends a request and returns every byte of the reply.
    private func whole(_ client: RawConnection, _ request: String) async throws -> String {
        try await client.send(request)
        let head = try await client.read(through: "\r\n\r\n")
        let length = MessageHead(head)["content-length"].flatMap { Int($0) } ?? 0
        return head + String(decoding: try await client.read(bytes: length), as: UTF8.self)
    }

    /// True if `request` was answered without the full path.
    private func isHot(_ pool: Pool, _ client: RawConnection, _ request: String = get) async throws -> Bool {
        let before = pool.engine.statistics.hotHits
        _ = try await whole(client, request)
        return pool.engine.statistics.hotHits > before
    }

    // MARK: the same bytes

    @Test(
        arguments: [
            [:], [.date: "Thu, 01 Jan 2026 00:00:00 GMT"], [.age: "7"], [.vary: "Accept-Encoding"],
            [.eTag: "\"a\"", .connection: "X", .via: "1.1 other"],
        ] as [HTTPFields])
    func aHotReplyIsTheFullOne(fields: HTTPFields) async throws {
        var fields = fields
        fields[.cacheControl] = "max-age=60"
        let answer = ScriptedAnswer.ok("pearl", fields)
        let pool = try await Pool(rule: { _ in answer })
        let client = try await pool.connect()
        _ = try await whole(client, Self.get)
        let full = try await whole(client, Self.get)
        #expect(pool.engine.statistics.hotHits == 0 && full.contains("rockpool; hit; ttl="))
        _ = try await warm(pool)
        #expect(try await isHot(pool, client))
        #expect(try await whole(client, Self.get) == full)
        for span in [TimeSpan.milliseconds(1), .milliseconds(998), .milliseconds(1), .milliseconds(1500), .seconds(20)] {
            pool.scripted.clock.advance(by: span)
            // A field that may affect the response takes the full path and yields the same response.
            let before = pool.engine.statistics.hotHits
            let full = try await whole(client, Self.get.replacing("User-Agent: t", with: "Max-Forwards: 9"))
            #expect(pool.engine.statistics.hotHits == before)
            #expect(try await whole(client, Self.get) == full)
            #expect(pool.engine.statistics.hotHits == before + 1)
        }
    }

    @Test(arguments: [0, 1, 16 * 1024, 16 * 1024 + 1, 200_000])
    func bodiesOfAnySize(length: Int) async throws {
        let body = String(repeating: "p", count: length)
        let pool = try await Pool(rule: { _ in .ok(body) })
        let client = try await warm(pool)
        #expect(try await whole(client, Self.get).hasSuffix("\r\n\r\n" + body))
    }

    @Test func pipelinedRequestsKeepTheirOrderWhicheverWayTheyGo() async throws {
        let pool = try await Pool(rule: { $0.head.target == "/a" ? .ok("pearl") : .ok($0.head.target, [.cacheControl: "no-store"]) })
        let client = try await warm(pool)
        let before = pool.engine.statistics.hotHits
        func get(_ target: String) -> String { Self.get.replacing("/a", with: target) }
        try await client.send([get("/a"), get("/a"), get("/1"), get("/a"), get("/2"), String(get("/a").dropLast(7))].joined())
        for body in ["pearl", "pearl", "/1", "pearl", "/2"] { #expect(try await client.response().body == body) }
        #expect(pool.engine.statistics.hotHits == before + 2, "hot: the two requests before the first one that is not")
        try await client.send(String(get("/a").suffix(7)))
        #expect(try await client.response().body == "pearl")
        #expect(try await isHot(pool, client), "hot again: the decoder is between requests")
    }

    @Test func aBodyIsNeverTakenForARequest() async throws {
        let pool = try await Pool(rule: { $0.head.method == .post ? .ok($0.text, [:]) : .ok() })
        let client = try await warm(pool)
        let before = pool.engine.statistics.hotHits
        try await client.send("POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(Self.get.utf8.count)\r\n\r\n")
        try await eventually("the head is read") { pool.engine.statistics.total > 0 }
        try await client.send(Self.get)
        #expect(try await client.response().body == Self.get)
        #expect(pool.engine.statistics.hotHits == before)
    }

    // MARK: only while nothing has changed

    @Test(arguments: [
        "Cookie: a=b", "Authorization: Bearer t", "X-Api-Key: k", "Cache-Control: no-cache", "Range: bytes=0-1, 4-5", "If-Range: x",
        "If-None-Match: *",
        "Connection: close", "Via: 1.1 x", "X-Forwarded-Host: evil", "Content-Length: 0", "X-User: me", "accept-encoding: br",
        "Accept-Encoding: gzip,", "Accept-Encoding: gzip\r\nAccept-Encoding: gzip", "X:\ty", "Host: localhost",
    ])
    func otherRequestsGoTheFullWay(line: String) async throws {
        let pool = try await Pool(
            rule: { _ in .ok("pearl", [.cacheControl: "max-age=60", .vary: "Accept-Encoding"]) },
            upstream: .notes { $0.identity = .header("X-User") })
        _ = try await warm(pool, Self.get.replacing("User-Agent: t", with: "Accept-Encoding: gzip"))
        _ = try await warm(pool)
        let client = try await pool.connect()
        let before = pool.engine.statistics.hotHits
        try await client.send(Self.get.replacing("User-Agent: t", with: line))
        _ = try await client.response()
        #expect(pool.engine.statistics.hotHits == before)
    }

    @Test func variantsAreHotBesideEachOther() async throws {
        let pool = try await Pool(rule: {
            .ok($0.head.fields[.acceptEncoding] ?? "none", [.cacheControl: "max-age=60", .vary: "Accept-Encoding"])
        })
        let coded = Self.get.replacing("User-Agent: t", with: "Accept-Encoding: gzip")
        for request in [Self.get, coded, Self.get] { _ = try await warm(pool, request) }
        let client = try await pool.connect()
        #expect(try await isHot(pool, client))
        #expect(try await isHot(pool, client, coded))
        #expect(try await whole(client, Self.get).hasSuffix("none"))
        #expect(try await whole(client, coded).hasSuffix("gzip"))
    }

    @Test func anotherHostOrTargetIsAnotherRequest() async throws {
        let pool = try await Pool()
        let client = try await warm(pool)
        #expect(try await !isHot(pool, client, Self.get.replacing("localhost", with: "api.test")))
        #expect(try await !isHot(pool, client, Self.get.replacing("/a", with: "/b")))
        #expect(try await isHot(pool, client))
    }

    @Test(arguments: ["remove", "invalidate", "store", "forget"])
    func whatIsChangedIsNotHot(how: String) async throws {
        let pool = try await Pool()
        let client = try await warm(pool)
        switch how {
        case "remove": _ = try await pool.scripted.store.cache.remove(where: .urls(["http://api.test/a"]))
        case "invalidate": _ = try await pool.scripted.store.cache.invalidate(urls: ["http://api.test/a"])
        case "store": _ = try await whole(client, Self.get.replacing("User-Agent: t", with: "Cache-Control: no-cache"))
        default: pool.engine.reconfigure(pool.engine.configuration)
        }
        if how == "store" { try await eventually("the answer is stored") { pool.origin.sent.count == 2 } }
        #expect(try await !isHot(pool, client))
        _ = try await warm(pool)
    }

    @Test func whatIsStoredForRequestsWithoutCredentialsCounts() async throws {
        let pool = try await Pool(rule: {
            .ok("pearl", $0.head.fields[.cacheControl] == nil ? [.cacheControl: "max-age=60"] : [.cacheControl: "private, max-age=60"])
        })
        let client = try await warm(pool)
        _ = try await whole(client, Self.get.replacing("User-Agent: t", with: "Cache-Control: no-cache"))
        #expect(try await !isHot(pool, client))
    }

    @Test func staleIsNotHot() async throws {
        let pool = try await Pool()
        let client = try await warm(pool)
        pool.scripted.clock.advance(by: .milliseconds(59_999))
        #expect(try await isHot(pool, client))
        pool.scripted.clock.advance(by: .milliseconds(1))
        #expect(try await !isHot(pool, client))
    }

    @Test(arguments: [Strategy.networkFirst, .networkOnly])
    func strategiesThatAskAreNotHot(strategy: Strategy) async throws {
        let pool = try await Pool(upstream: .notes { $0.routes = [Route(match: "/a", strategy: strategy)] })
        let client = try await pool.connect()
        for _ in 0..<4 { #expect(try await !isHot(pool, client)) }
    }

    // MARK: the connection

    @Test func requestsOfAConnectionAreCounted() async throws {
        let pool = try await Pool { $0.proxy.limits.requestsPerConnection = 6 }
        _ = try await warm(pool)
        let client = try await pool.connect()
        for number in 1...6 {
            let reply = try await whole(client, Self.get)
            #expect(reply.contains("Connection: close") == (number == 6), "\(number)")
        }
        _ = try await client.readToEnd()
    }

    @Test func aClientThatSendsAndEndsGetsItsReplies() async throws {
        let pool = try await Pool()
        _ = try await warm(pool)
        let client = try await pool.connect()
        try await client.send(Self.get + Self.get)
        try await client.finish()
        let all = try await client.readToEnd()
        #expect(all.components(separatedBy: "pearl").count == 3)
    }

    @Test func drainingEndsAnIdleHotConnection() async throws {
        let pool = try await Pool()
        let client = try await warm(pool)
        await pool.listeners.drain(within: .seconds(5))
        #expect(try await client.readToEnd() == "")
        #expect(pool.listeners.connections.count == 0)
    }

    @Test func anIdleConnectionEndsInTimeAfterAHotReply() async throws {
        let pool = try await Pool { $0.proxy.timeouts.idle = .milliseconds(300) }
        _ = try await warm(pool)
        let client = try await pool.connect()
        #expect(try await isHot(pool, client))
        #expect(try await client.readToEnd(within: .seconds(5)) == "")
    }

    @Test func aClientThatTakesNothingIsCutOff() async throws {
        let body = String(repeating: "p", count: 200_000)
        let pool = try await Pool(rule: { _ in .ok(body) }) { $0.proxy.timeouts.idle = .milliseconds(500) }
        _ = try await warm(pool)
        let client = try await pool.connect(isSlow: true)
        try await client.send(String(repeating: Self.get, count: 200))
        try await eventually("the connection is closed", within: .seconds(10)) { pool.listeners.connections.count <= 1 }
    }
}
