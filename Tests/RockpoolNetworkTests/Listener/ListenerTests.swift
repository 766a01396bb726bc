// Client connections end to end over a scripted upstream: order, framing, limits and refusals (RFC 9112;
// docs/security-model.md#request-gate, docs/security-model.md#limits-and-fairness).
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct ListenerTests {
    private let get = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"

    // MARK: one connection, many requests

    @Test func aConnectionCarriesManyRequests() async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        for _ in 0..<3 {
            try await client.send(get)
            let (head, body) = try await client.response()
            #expect(head.status == 200 && body == "pearl" && head["connection"] == nil)
        }
        #expect(pool.origin.sent.count == 1, "the first response filled the cache")
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        let pool = try await Pool(rule: { .ok($0.head.target, [.cacheControl: "no-store"]) })
        let client = try await pool.connect()
        try await client.send((0..<20).map { "GET /\($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined())
        for number in 0..<20 { #expect(try await client.response().body == "/\(number)") }
        #expect(pool.origin.lines == (0..<20).map { "GET /\($0)" }, "the exchanges run one after another")
    }

    @Test(arguments: [
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close\r\n", false), ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: keep-alive\r\n", true),
    ])
    func whoKeepsAConnection(version: String, field: String, staysOpen: Bool) async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        try await client.send("GET /a \(version)\r\nHost: localhost\r\n\(field)\r\n")
        let (head, _) = try await client.response()
        #expect((head["connection"] == "close") == !staysOpen)
        if staysOpen {
            try await client.send(get)
            #expect(try await client.response().head.status == 200)
        } else {
            #expect(try await client.readToEnd() == "")
        }
    }

    @Test func anOldClientGetsNoChunks() async throws {
        let feed = BodyPipe()
        let pool = try await Pool(rule: { _ in .live(ResponseHead(status: 200, fields: [.cacheControl: "no-store"]), feed, length: nil) })
        let client = try await pool.connect()
        try await client.send("GET /a HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        feed.offer(ByteBuffer(string: "pea"))
        feed.offer(ByteBuffer(string: "rl"))
        feed.finish()
        let all = try await client.readToEnd()
        #expect(all.hasSuffix("\r\n\r\npearl") && !all.lowercased().contains("transfer-encoding") && all.contains("Connection: close\r\n"))
    }

    @Test func aBodyOfUnknownLengthIsChunked() async throws {
        let feed = BodyPipe()
        let pool = try await Pool(rule: { _ in .live(ResponseHead(status: 200, fields: [.cacheControl: "no-store"]), feed, length: nil) })
        let client = try await pool.connect()
        try await client.send(get)
        #expect(try await client.read(through: "\r\n\r\n").contains("Transfer-Encoding: chunked\r\n"))
        feed.offer(ByteBuffer(string: "pea"))
        #expect(try await client.read(through: "pea\r\n") == "3\r\npea\r\n", "the chunk is forwarded before the body is complete")
        feed.finish()
        #expect(try await client.read(through: "0\r\n\r\n") == "0\r\n\r\n")
    }

    @Test func aStoredFileIsSentWhole() async throws {
        let large = String(repeating: "0123456789", count: 60_000)
        let pool = try await Pool(rule: { _ in .ok(large, [.cacheControl: "max-age=60", .contentType: "application/json"]) })
        let client = try await pool.connect()
        for _ in 0..<3 {
            try await client.send(get)
            #expect(try await client.response().body == large)
        }
        #expect(pool.origin.sent.count == 1)
    }

    @Test func aBodyThatBreaksOffLooksBroken() async throws {
        let cut = TransferFailure(kind: .reset, sent: .yes)
        let pool = try await Pool(rule: { _ in .broken(ResponseHead(status: 200, fields: [.cacheControl: "no-store"]), ["pea"], cut) })
        let all = try await pool.answer(to: get)
        #expect(all.hasSuffix("3\r\npea\r\n"), "the last chunk must be missing")
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
    func whatHasNoBodyIsFollowedByTheNextHead(method: String, status: Int) async throws {
        let pool = try await Pool(rule: { _ in .status(status, [.cacheControl: "no-store"], status == 200 ? "pearl" : "") })
        let client = try await pool.connect()
        for _ in 0..<2 {
            try await client.send("\(method) /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let (head, _) = try await client.response(hasBody: false)
            #expect(head.status == status && head["transfer-encoding"] == nil)
            #expect(head["content-length"] == (status == 200 ? "5" : nil))
        }
    }

    @Test func aRefusedHeadHasNoBodyEither() async throws {
        let pool = try await Pool()
        let all = try await pool.answer(to: "HEAD /a HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        #expect(all.hasPrefix("HTTP/1.1 421 ") && all.hasSuffix("\r\n\r\n") && !all.contains("Content-Length: 0"))
    }

    // MARK: request bodies

    @Test(arguments: ["Content-Length: 5\r\n\r\nshell", "Transfer-Encoding: chunked\r\n\r\n2\r\nsh\r\n3;x=y\r\nell\r\n0\r\nX-T: 1\r\n\r\n"])
    func bodiesReachTheUpstreamWhole(rest: String) async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        try await client.send("PUT /a HTTP/1.1\r\nHost: localhost\r\n\(rest)")
        #expect(try await client.response().head.status == 200)
        let sent = try #require(pool.origin.sent.first)
        #expect(sent.text == "shell")
        for name in [HTTPField.Name.contentLength, .transferEncoding, .trailer] { #expect(sent.head.fields[name] == nil) }
    }

    @Test func hopByHopFieldsStayBehindAndOurMarksAreAdded() async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        try await client.send(
            "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nX-End: 2\r\n"
                + "Via: 1.0 other\r\n\r\n"
        )
        _ = try await client.response()
        let fields = try #require(pool.origin.sent.first?.head.fields)
        #expect(fields.map(\.name.canonicalName).sorted() == ["cdn-loop", "via", "via", "x-end"])
        #expect(fields[values: .via] == ["1.0 other", "1.1 pool"])
    }

    @Test func continueIsSentWhenTheBodyIsWanted() async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        try await client.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        #expect(try await client.read(through: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
        try await client.send("shell")
        #expect(try await client.response().head.status == 200)
        #expect(pool.origin.sent.map(\.text) == ["shell"])
    }

    @Test func aRefusedBodyIsNotAskedFor() async throws {
        let pool = try await Pool(upstream: .notes { $0.queue.maxBody = ByteCount(3) })
        pool.scripted.goOffline()
        let client = try await pool.connect()
        try await client.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        #expect(try await client.response().head.status == 413)
        #expect(try await client.readToEnd() == "", "the connection is closed because the unread body would follow")
    }

    @Test func aClientThatLeavesInItsBodyLeavesNothingBehind() async throws {
        let pool = try await Pool()
        let client = try await pool.connect()
        try await client.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nhalf")
        await client.close()
        let other = try await pool.connect()
        try await other.send(get)
        #expect(try await other.response().head.status == 200)
        #expect(pool.origin.lines == ["GET /a"])
        #expect(try await pool.scripted.store.data.openOperations().isEmpty)
    }

    @Test func aMalformedBodyReachesNobody() async throws {
        let pool = try await Pool()
        let all = try await pool.answer(to: "PUT /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabX\r\n")
        #expect(all.hasPrefix("HTTP/1.1 400 "))
        #expect(pool.origin.sent.isEmpty)
    }

    // MARK: refusals

    @Test(arguments: [
        ("GET /a HTTP/1.1\r\n\r\n", 400), ("GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET /a HTTP/2.0\r\nHost: localhost\r\n\r\n", 505), ("GET /a HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST /a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: Authorization\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421), ("TRACE /a HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("GET /a HTTP/1.1\r\nHost: localhost\r\nVia: 1.1 pool\r\n\r\n", 508),
        ("GET /a HTTP/1.1\r\nHost: localhost\r\nCDN-Loop: pool\r\n\r\n", 508),
        ("GET /\(String(repeating: "a", count: 17_000)) HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        ("GET /a HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "a", count: 33_000))\r\n\r\n", 431),
        ("GET /a HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: "X: 1\r\n", count: 128))\r\n", 431),
    ])
    func whatIsRefusedIsAnsweredAndClosed(request: String, status: Int) async throws {
        let pool = try await Pool()
        let all = try await pool.answer(to: request + get)
        #expect(all.hasPrefix("HTTP/1.1 \(status) "), "\(all.prefix(60))")
        #expect(all.contains("Content-Type: application/problem+json\r\n") && all.contains("Connection: close\r\n"))
        #expect(all.contains("urn:rockpool:problem:version-not-supported") == (status == 505), "\(all)")
        #expect(all.components(separatedBy: "\r\nDate: ").count == 2, "no second response follows")
        #expect(pool.origin.sent.isEmpty)
    }

    @Test func whatCameBeforeARefusalIsAnsweredFirst() async throws {
        let pool = try await Pool()
        let all = try await pool.answer(to: get + "nonsense\r\n\r\n")
        let statuses = all.components(separatedBy: "HTTP/1.1 ").dropFirst().map { $0.prefix(3) }
        #expect(statuses == ["200", "400"])
    }

    // MARK: slow clients

    @Test func aSlowHeadIs408AtItsLimit() async throws {
        let pool = try await Pool { $0.proxy.timeouts.head = .milliseconds(150) }
        let client = try await pool.connect()
        try await client.send("GET /a HTTP/1.1\r\nHost: lo")
        #expect(try await client.readToEnd(within: .seconds(5)).hasPrefix("HTTP/1.1 408 "))
    }

    @Test func anIdleConnectionIsClosed() async throws {
        let pool = try await Pool { $0.proxy.timeouts.idle = .milliseconds(150) }
        #expect(try await pool.connect().readToEnd(within: .seconds(5)) == "")
        let used = try await pool.connect()
        try await used.send(get)
        _ = try await used.response()
        #expect(try await used.readToEnd(within: .seconds(5)) == "")
    }

    @Test func aBodyThatStopsComingIs408() async throws {
        let pool = try await Pool { $0.proxy.timeouts.body = .milliseconds(150) }
        let client = try await pool.connect()
        try await client.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nhalf")
        #expect(try await client.readToEnd(within: .seconds(5)).hasPrefix("HTTP/1.1 408 "))
        #expect(pool.origin.sent.isEmpty)
    }

    /// After a response that took longer than the client's idle limit, the limits apply to the next request.
    @Test func afterALongAnswerTheLimitsHoldAgain() async throws {
        let feed = BodyPipe()
        let pool = try await Pool(rule: { _ in .live(ResponseHead(status: 200, fields: [.cacheControl: "no-store"]), feed, length: 5) }) {
            $0.proxy.timeouts.idle = .milliseconds(150)
        }
        let client = try await pool.connect()
        try await client.send(get)
        _ = try await client.read(through: "\r\n\r\n")
        try await Task.sleep(for: .milliseconds(400))
        feed.offer(ByteBuffer(string: "pearl"))
        feed.finish()
        #expect(try await client.read(bytes: 5) == Array("pearl".utf8), "the client's limits do not apply to the server's answer")
        #expect(try await client.readToEnd(within: .seconds(5)) == "")
    }

    @Test func aSlowReaderSlowsTheUpstream() async throws {
        let feed = BodyPipe()
        let (offered, taken) = (Counter(), Counter())
        let pool = try await Pool(rule: { _ in .live(ResponseHead(status: 200, fields: [.cacheControl: "no-store"]), feed, length: 64 << 20)
        })
        let client = try await pool.connect(isSlow: true)
        try await client.send(get)
        let (rooms, room) = AsyncStream.makeStream(of: Void.self)
        feed.onSignal { if $0 == .drained { room.yield() } }
        let producer = Task {
            var rooms = rooms.makeAsyncIterator()
            for _ in 0..<1024 {
                offered.add(64 << 10)
                if !feed.offer(ByteBuffer(repeating: 7, count: 64 << 10)) { await rooms.next() }
            }
            feed.finish()
        }
        var last = -1
        try await eventually("the upstream stands still") {
            let now = offered.value
            defer { last = now }
            try await Task.sleep(for: .milliseconds(100))
            return now == last && now > 0
        }
        #expect(offered.value < 24 << 20)
        while taken.value < 64 << 20, let count = try await client.take() { taken.add(count) }
        #expect(taken.value >= 64 << 20)
        await producer.value
    }

    @Test func aClientThatLeavesInTheAnswerFreesTheUpstream() async throws {
        let feed = BodyPipe()
        let isAbandoned = Flag()
        feed.onSignal { if $0 == .abandoned { isAbandoned.raise() } }
        let pool = try await Pool(rule: { _ in .live(ResponseHead(status: 200, fields: [.cacheControl: "no-store"]), feed, length: nil) })
        let client = try await pool.connect()
        try await client.send(get)
        _ = try await client.read(through: "\r\n\r\n")
        await client.close()
        try await eventually("the upstream is told", within: .seconds(5)) {
            feed.offer(ByteBuffer(string: "more"))
            return isAbandoned.isRaised
        }
    }

    // MARK: the server's own limits

    @Test func pastTheLimitTheIdleMakeRoom() async throws {
        let pool = try await Pool { $0.proxy.limits.connections = 2 }
        var clients: [RawConnection] = []
        for number in 1...3 {
            clients.append(try await pool.connect())
            // Connections are admitted on several event loops; open them one after the other, so that the first has been idle longest.
            try await eventually("it is admitted") { pool.listeners.connections.count == min(number, 2) }
        }
        #expect(try await clients[0].readToEnd(within: .seconds(5)) == "")
        try await clients[2].send(get)
        #expect(try await clients[2].response().head.status == 200)
        #expect(pool.listeners.connections.count == 2)
    }

    /// Clients of this machine share by process, not by address, also where other addresses may connect.
    @Test(arguments: [([], 3), (["192.0.2.0/24"], 3)] as [([String], Int)])
    func thisMachineHasNoLimitOfAnAddress(allowed: [String], open: Int) async throws {
        let pool = try await Pool {
            $0.proxy.allow = allowed
            $0.proxy.limits.connectionsPerAddress = 2
        }
        var clients: [RawConnection] = []
        for number in 1...3 {
            clients.append(try await pool.connect())
            try await eventually("it is admitted") { pool.listeners.connections.count == min(number, open) }
        }
        try await clients[2].send(get)
        #expect(try await clients[2].response().head.status == 200)
        #expect(pool.listeners.connections.count == open)
    }

    @Test func aConnectionEndsAfterItsShareOfRequests() async throws {
        let pool = try await Pool { $0.proxy.limits.requestsPerConnection = 2 }
        let all = try await pool.answer(to: get + get + get)
        #expect(all.components(separatedBy: "HTTP/1.1 200").count == 3)
        #expect(all.contains("Connection: close\r\n"))
    }

    @Test func drainingEndsIdleConnectionsAndFinishesTheOthers() async throws {
        let feed = BodyPipe()
        let pool = try await Pool(rule: { _ in .live(ResponseHead(status: 200, fields: [.cacheControl: "no-store"]), feed, length: 5) })
        let (idle, busy) = (try await pool.connect(), try await pool.connect())
        try await busy.send(get)
        _ = try await busy.read(through: "\r\n\r\n")
        async let drained: Void = pool.listeners.drain(within: .seconds(10))
        #expect(try await idle.readToEnd(within: .seconds(5)) == "")
        feed.offer(ByteBuffer(string: "pearl"))
        feed.finish()
        #expect(try await busy.readToEnd(within: .seconds(5)) == "pearl")
        await drained
        await #expect(throws: (any Error).self) { try await pool.connect() }
    }

    @Test func anAddressThatIsTakenIsNamed() async throws {
        let pool = try await Pool()
        await #expect { try await Pool { $0.proxy.listen = pool.proxy } } throws: { "\($0)".contains(pool.proxy) }
    }

    @Test func theProxyTakesTheWholeURL() async throws {
        let pool = try await Pool()
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("GET http://api.test/a?b HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(try await client.response().head.status == 200)
        #expect(pool.origin.sent.first?.head.url == "http://api.test/a?b", "the URL has the target's authority, not that of Host")
    }
}

/// A counter shared between tasks.
final class Counter: Sendable {
    private let sum = Mutex(0)
    var value: Int { sum.withLock { $0 } }
    func add(_ count: Int) { sum.withLock { $0 += count } }
}
