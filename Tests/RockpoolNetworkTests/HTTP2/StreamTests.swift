// HTTP/2 streams at the byte level: errors required by RFC 9113, errors that a connection survives, and the end of a connection.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct StreamTests {
    private func connect(_ pool: Pool) async throws -> RawConnection {
        let client = try await pool.tunnel(protocols: ["h2"])
        try await client.send(RawFrame.preface)
        return client
    }

    @Test func streamsAreAnsweredSideBySide() async throws {
        let gate = Gate()
        let pool = try await Pool.intercepting(rule: { $0.head.target == "/slow" ? .held(gate, .ok()) : .ok() })
        let client = try await connect(pool)
        try await client.send(RawFrame.get(1, "/slow"), RawFrame.get(3))
        #expect(try await client.frame(.headers).stream == 3)
        gate.open()
        #expect(try await client.frame(.headers).stream == 1)
    }

    typealias Fields = [(String, String)]

    static let good: Fields = [(":method", "GET"), (":scheme", "https"), (":authority", "api.test"), (":path", "/a")]
    static let malformed: [(what: String, fields: Fields)] = [
        ("the scheme of another connection", [(":method", "GET"), (":scheme", "http"), (":authority", "api.test"), (":path", "/a")]),
        ("two authorities", good + [("host", "evil.test")]),
        ("a connection field", good + [("connection", "close")]),
        ("a coding", good + [("transfer-encoding", "chunked")]),
        ("a tunnel", [(":method", "CONNECT"), (":authority", "api.test:443")]),
        ("no path", [(":method", "GET"), (":scheme", "https"), (":authority", "api.test")]),
        ("no authority", [(":method", "GET"), (":scheme", "https"), (":path", "/a")]),
        ("TE that is none", good + [("te", "gzip")]),
        ("an upper-case name", good + [("X-Pearl", "1")]),
        ("DEL in a value", good + [("x-pearl", "a\u{7F}b")]),
        ("a control character in a value", good + [("x-pearl", "a\u{01}b")]),
        ("a space before a value", good + [("x-pearl", " a")]),
        ("a tab behind a value", good + [("x-pearl", "a\t")]),
        ("a value of a space", good + [("x-pearl", " ")]),
        ("a space behind the path", [(":method", "GET"), (":scheme", "https"), (":authority", "api.test"), (":path", "/a ")]),
    ]

    @Test(arguments: malformed.indices)
    func aMalformedHeadEndsItsStreamAndReachesNobody(index: Int) async throws {
        let (what, fields) = Self.malformed[index]
        let pool = try await Pool.intercepting()
        let client = try await connect(pool)
        try await client.send(RawFrame.head(1, fields))
        #expect(try await client.frame(.reset, .goAway).code == 1, "expected PROTOCOL_ERROR for \(what)")
        #expect(pool.origin.sent.isEmpty)
    }

    @Test func whatIsUnusualIsNoFault() async throws {
        let pool = try await Pool.intercepting()
        let client = try await connect(pool)
        let unusual = [("host", "api.test"), ("te", "trailers"), ("x-empty", ""), ("x-tab", "a\tb  c"), ("x-text", "\u{E9}")]
        try await client.send(RawFrame.head(1, Self.good + unusual))
        #expect(try await client.frame(.headers, .reset).kind == .headers)
    }

    @Test func aClientIsToldToStopSendingWhatNobodyNeeds() async throws {
        let pool = try await Pool.intercepting()
        let client = try await connect(pool)
        let head = [(":method", "POST"), (":scheme", "https"), (":authority", "evil.test"), (":path", "/a")]
        try await client.send(RawFrame.head(1, head, endsStream: false))
        #expect(try await client.frame(.headers).stream == 1)
        let reset = try await client.frame(.reset)
        #expect(reset.stream == 1 && reset.code == 0, "NO_ERROR: the response is complete")
    }

    @Test(arguments: ["api.test", "evil.test"]) func theAnswerToHeadIsItsHeadAlone(authority: String) async throws {
        let pool = try await Pool.intercepting()
        let client = try await connect(pool)
        try await client.send(
            RawFrame.head(1, [(":method", "HEAD"), (":scheme", "https"), (":authority", authority), (":path", "/a")]), RawFrame.get(3))
        for _ in 0..<2 {
            let frame = try await client.frame(.headers, .data)
            #expect(frame.kind == .headers)
            guard frame.stream == 1 else { continue }
            #expect(frame.flags & 1 == 1, "END_STREAM")
            return
        }
    }

    @Test(arguments: [true, false], ["no-store", "max-age=60"])
    func trailersEndTheStreamOfWhoTakesThem(isTaken: Bool, caching: String) async throws {
        let head = ResponseHead(status: 200, fields: [.cacheControl: caching])
        let name = try #require(HTTPField.Name("X-Sum"))
        let pool = try await Pool.intercepting(rule: { _ in
            .live(head, BodyPipe(whole: ByteBuffer(string: "pearl"), trailers: [name: "42"]), length: nil)
        })
        let client = try await connect(pool)
        try await client.send(RawFrame.head(1, Self.good + (isTaken ? [("te", "trailers")] : [])))
        var frames = [try await client.frame(.headers)]
        while let last = frames.last, last.flags & 1 == 0 { frames.append(try await client.frame(.headers, .data)) }
        #expect(frames.filter { $0.kind == .headers }.count == (isTaken ? 2 : 1))
    }

    /// Some clients end a request without a body by an empty DATA frame or by trailers.
    @Test(
        arguments: ["GET", "DELETE"],
        [
            [RawFrame(.data, flags: 1, stream: 1)], [RawFrame(.data, stream: 1), RawFrame(.data, flags: 1, stream: 1)],
            [RawFrame.head(1, [("x-t", "1")])],
        ])
    func anEmptyEndMakesNoBody(method: String, end: [RawFrame]) async throws {
        let pool = try await Pool.intercepting(rule: { .status(200, [:], $0.isBodiless ? "none" : "some") })
        let client = try await connect(pool)
        let head = [(":method", method), (":scheme", "https"), (":authority", "api.test"), (":path", "/a")]
        try await client.send(RawFrame.head(1, head, endsStream: false))
        for frame in end { try await client.send(frame) }
        #expect(try await client.frame(.headers).stream == 1)
        #expect(try await String(decoding: client.frame(.data).payload, as: UTF8.self) == "none")
    }

    /// A body that is shorter or longer than its length is an error of its stream alone (RFC 9113 §8.1.1), as a client makes it that gives up.
    @Test(arguments: ["3", "9"]) func aBodyOfAnotherLengthEndsItsStreamAlone(length: String) async throws {
        let gate = Gate()
        let pool = try await Pool.intercepting(rule: { $0.head.target == "/slow" ? .held(gate, .ok()) : .ok() })
        let client = try await connect(pool)
        try await client.send(RawFrame.get(1, "/slow"))
        let head = [(":method", "PUT"), (":scheme", "https"), (":authority", "api.test"), (":path", "/a"), ("content-length", length)]
        try await client.send(RawFrame.head(3, head, endsStream: false), RawFrame(.data, flags: 1, stream: 3, payload: Array("pearl".utf8)))
        let reset = try await client.frame(.reset, .goAway)
        #expect(reset.kind == .reset && reset.stream == 3 && reset.code == 1)
        gate.open()
        #expect(try await client.frame(.headers).stream == 1)
        try await client.send(RawFrame.get(5))
        #expect(try await client.frame(.headers).stream == 5)
    }

    @Test func moreStreamsThanAllowedAreRefusedOneByOne() async throws {
        let gate = Gate()
        let pool = try await Pool.intercepting(rule: { _ in .held(gate, .ok("pearl", [.cacheControl: "no-store"])) })
        let client = try await connect(pool)
        _ = try await client.frame(.settings)
        for number in 0..<HTTP2Connection.maximumStreams { try await client.send(RawFrame.get(number * 2 + 1, "/\(number)")) }
        try await eventually("all are under way") { pool.origin.sent.count == HTTP2Connection.maximumStreams }
        try await client.send(RawFrame.get(HTTP2Connection.maximumStreams * 2 + 1))
        let refusal = try await client.frame(.reset, .goAway)
        #expect(refusal.code == 1 || refusal.code == 7, "expected PROTOCOL_ERROR or REFUSED_STREAM")
        gate.open()
        #expect(pool.origin.sent.count == HTTP2Connection.maximumStreams)
    }

    /// A truncated body ends its stream with a reset, never with END_STREAM (RFC 9113 §8.1).
    @Test func aBodyThatBreaksOffResetsItsStream() async throws {
        let cut = TransferFailure(kind: .reset, sent: .yes, detail: "cut")
        for length in ["10", nil] {
            let pool = try await Pool.intercepting(rule: { _ in
                var fields: HTTPFields = [.cacheControl: "max-age=60"]
                fields[.contentLength] = length
                return .broken(ResponseHead(status: 200, fields: fields), ["01234"], cut)
            })
            let client = try await connect(pool)
            try await client.send(RawFrame.get(1))
            var data = 0
            while true {
                let frame = try await client.frame(.headers, .data, .reset)
                if frame.kind == .reset { break }
                #expect(frame.flags & 1 == 0, "END_STREAM on a truncated body")
                if frame.kind == .data { data += frame.payload.count }
            }
            #expect(data == 5)
        }
    }

    @Test func aFloodOfResetsEndsTheConnection() async throws {
        let pool = try await Pool.intercepting(rule: { _ in .ok("pearl", [.cacheControl: "no-store"]) })
        let client = try await connect(pool)
        for number in 0..<(HTTP2Connection.resets * 2) {
            guard (try? await client.send(RawFrame.get(number * 2 + 1), RawFrame.reset(number * 2 + 1))) != nil else { break }
        }
        let farewell = try await client.frame(.goAway)
        #expect(farewell.code == 11, "ENHANCE_YOUR_CALM")
    }

    @Test func theLimitOfRequestsEndsAConnectionWithoutLoss() async throws {
        let pool = try await Pool.intercepting { $0.proxy.limits.requestsPerConnection = 3 }
        let client = try await connect(pool)
        for number in 0..<3 { try await client.send(RawFrame.get(number * 2 + 1)) }
        for _ in 0..<3 { #expect(try await client.frame(.headers).kind == .headers) }
        _ = try await client.readToEnd()
    }

    @Test func anIdleConnectionIsSaidFarewell() async throws {
        let pool = try await Pool.intercepting { $0.proxy.timeouts.idle = .milliseconds(300) }
        let client = try await connect(pool)
        #expect(try await client.frame(.goAway).code == 0)
    }

    @Test func aDrainLetsStreamsFinish() async throws {
        let gate = Gate()
        let pool = try await Pool.intercepting(rule: { _ in .held(gate, .ok()) })
        let client = try await connect(pool)
        try await client.send(RawFrame.get(1))
        try await eventually("it is under way") { pool.origin.sent.count == 1 }
        async let drained: Void = pool.listeners.drain(within: .seconds(10))
        #expect(try await client.frame(.goAway).code == 0)
        gate.open()
        #expect(try await client.frame(.headers).stream == 1)
        _ = await drained
        #expect(pool.listeners.connections.count == 0)
    }

    @Test func aBodyIsTakenNoFasterThanItIsRead() async throws {
        let pool = try await Pool.intercepting(rule: { .status(200, [:], "\($0.body.count)") })
        let client = try await connect(pool)
        let head = [(":method", "PUT"), (":scheme", "https"), (":authority", "api.test"), (":path", "/a"), ("content-length", "131072")]
        try await client.send(RawFrame.head(1, head, endsStream: false))
        for piece in 0..<8 {
            try await client.send(RawFrame(.data, flags: piece == 7 ? 1 : 0, stream: 1, payload: [UInt8](repeating: 7, count: 16_384)))
        }
        #expect(try await client.frame(.headers).stream == 1)
        #expect(try await String(decoding: client.frame(.data).payload, as: UTF8.self) == "131072")
    }
}
