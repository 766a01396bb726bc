// The upstream's side of the wire, byte by byte: chunks, line ends, and non-text bytes in fields (RFC 9112 §2.2, §7.1; RFC 9110 §5.5).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct FramingTests {
    private static let chunkedHead =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"

    // MARK: chunks

    /// A lenient parser accepts these as complete bodies; two different parsers would disagree about the start of the next response.
    enum Malformed: String, CaseIterable {
        case lineFeedAfterSize = "5\nhello\r\n0\r\n\r\n"
        case lineFeedAfterData = "5\r\nhello\n0\r\n\r\n"
        case lineFeedAfterLastSize = "5\r\nhello\r\n0\n\r\n"
        case lineFeedAfterExtension = "5;a=b\nhello\r\n0\r\n\r\n"
        case lineFeedAfterLastExtension = "5\r\nhello\r\n0;\n\r\n"
    }

    @Test(arguments: Malformed.allCases) func malformedChunksAreNoBody(_ malformed: Malformed) async throws {
        let wire = Array((Self.chunkedHead + malformed.rawValue).utf8)
        try await PlayedWorld.with({ _ in PlayedSite.Said(wire: wire, closes: true) }) { world in
            var before = 0
            for round in 1...2 {
                let reply = try await world.get("/a")
                #expect(reply.exit != 0 || reply.status == 502, "round \(round): \(reply.exit) \(reply.status) \(reply.text)")
                #expect(world.site.count("/a") > before, "round \(round) did not reach the origin")
                before = world.site.count("/a")
            }
            try await world.turn("offline")
            try await #expect(world.get("/a").status == 504)
            #expect(world.server.isRunning)
        }
    }

    @Test func extensionsTrailersAndEitherCaseAreChunksToo() async throws {
        let chunks = "5;a=b\r\nhello\r\nA\r\n0123456789\r\n00b;c=\"d;e\"\r\nabcdefghijk\r\n0\r\nX: y\r\n\r\n"
        let wire = Array((Self.chunkedHead + chunks).utf8)
        try await PlayedWorld.with({ _ in PlayedSite.Said(wire: wire) }) { world in
            let reply = try await world.get("/a")
            #expect(reply.status == 200 && reply.exit == 0 && reply.text == "hello0123456789abcdefghijk", "\(reply.exit) \(reply.text)")
            try await world.stored("/a")
            let hit = try await world.get("/a")
            #expect(hit.text == reply.text && hit["cache-status"]?.contains("hit") == true, "\(hit.heads)")
            #expect(world.site.count("/a") == 1)
            try await #expect(world.get("/b").text == reply.text)
            // The connection was used again. A relay has opened another one for the next new URL.
            #expect(world.site.count("/b") == 1 && world.site.connections <= 2, "\(world.site.connections) connections")
        }
    }

    @Test func aLargeBodyInChunksOfEverySizeIsWhole() async throws {
        var random = SystemRandomNumberGenerator()
        let bytes = stride(from: 0, to: 3_000_000, by: 8).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
        let sizes = [1, 7, 1000, 70_000, 16, 255, 65_536]
        var wire = Array(Self.chunkedHead.utf8)
        var (start, count) = (0, 0)
        while start < bytes.count {
            let end = min(start + sizes[count % sizes.count], bytes.count)
            wire += Array((String(end - start, radix: 16) + "\r\n").utf8)
            wire += bytes[start..<end]
            wire += Array("\r\n".utf8)
            (start, count) = (end, count + 1)
        }
        wire += Array("0\r\n\r\n".utf8)
        let message = wire
        try await PlayedWorld.with({ _ in PlayedSite.Said(wire: message) }) { world in
            for round in 0..<2 {
                let reply = try await world.get("/large")
                let isSame = reply.body == bytes
                #expect(reply.status == 200 && reply.exit == 0 && isSame, "round \(round): \(reply.exit), \(reply.body.count) bytes")
                try await world.stored("/large")
            }
            #expect(world.site.count("/large") == 1)
        }
    }

    // MARK: line ends of a head

    private static let bareHead = "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 5\n\nhello"

    /// A declared upstream may end its lines with bare LF; the client receives CRLF.
    @Test func aHeadWithBareLineFeedsIsReadAndMended() async throws {
        let wire = Array(Self.bareHead.utf8)
        try await PlayedWorld.with({ _ in PlayedSite.Said(wire: wire) }) { world in
            let connection = try await RawConnection.open(world.server.gateway)
            try await connection.send("GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            let text = try await connection.readToEnd()
            let head = MessageHead(text)
            #expect(head.status == 200 && head["content-type"] == "text/plain" && text.hasSuffix("\r\n\r\nhello"), "\(text)")
            let reply = Array(text.utf8)
            let bare = reply.indices.filter { reply[$0] == 0x0A && ($0 == 0 || reply[$0 - 1] != 0x0D) }
            #expect(bare.isEmpty, "\(text.debugDescription)")
            try await #expect(world.get("/b").text == "hello")
        }
    }

    @Test func anUndeclaredOriginEndsItsLinesAsItOught() async throws {
        let wire = Array(Self.bareHead.utf8)
        let origin = try await PlayedSite.start { _ in PlayedSite.Said(wire: wire, closes: true) }
        try await PlayedWorld.with({ _ in .text("declared") }) { world in
            let reply = try await Curl.send("GET", "http://127.0.0.1:\(origin.port)/a", proxy: world.server.proxy)
            #expect(reply.status == 502, "\(reply.exit) \(reply.status) \(reply.text)")
            #expect(origin.count("/a") >= 1)
        }
        await origin.stop()
    }

    // MARK: non-text bytes in fields

    /// The raw bytes of the request heads that an origin received.
    private final class Heads: Sendable {
        private let heads = Mutex<[[UInt8]]>([])

        var all: [[UInt8]] { heads.withLock { $0 } }

        /// Reads request heads and answers each of them.
        func serve(_ connection: RawConnection, _ answer: (_ head: [UInt8]) -> String) async throws {
            while true {
                var head: [UInt8] = []
                while !head.suffix(4).elementsEqual([0x0D, 0x0A, 0x0D, 0x0A]) {
                    head += try await connection.read(bytes: 1, within: .seconds(60))
                }
                let whole = head
                heads.withLock { $0.append(whole) }
                try await connection.send(answer(whole))
            }
        }
    }

    /// Sends a request with these bytes as the value of `X-Name`.
    private func ask(
        _ path: String, name: [UInt8], _ server: ServerProcess, port: Int, via door: Door = .gateway
    ) async throws -> (head: MessageHead, body: String) {
        let target = door == .gateway ? path : "http://127.0.0.1:\(port)\(path)"
        let connection = try await RawConnection.open(door == .gateway ? server.gateway : server.proxy)
        let start = Array("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nX-Name: ".utf8)
        let end = Array("\r\nConnection: close\r\n\r\n".utf8)
        try await connection.send(start + name + end)
        let reply = try await connection.response()
        await connection.close()
        return reply
    }

    @Test(arguments: Door.allCases) func theBytesOfAFieldArriveAsTheyAre(_ door: Door) async throws {
        let heads = Heads()
        let origin = try await RawServer.start { connection in
            try await heads.serve(connection) { _ in "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok" }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port))
        let names: [[UInt8]] = [[0x63, 0x61, 0x66, 0xE9], [0xFF, 0x20, 0x80, 0xC3], Array("café".utf8)]
        for name in names {
            let reply = try await ask("/name", name: name, server, port: origin.port, via: door)
            #expect(reply.head.status == 200 && reply.body == "ok", "\(name): \(reply.head.status) \(reply.body)")
            let line = Array("x-name: ".utf8) + name + [0x0D, 0x0A]
            // Field names may be in any case.
            let seen = heads.all.last.map { $0.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 } } ?? []
            #expect(seen.firstRange(of: line) != nil, "\(String(decoding: seen, as: UTF8.self))")
        }
        #expect(heads.all.count == 3)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }

    /// As text the two values would be equal, so a response that varies by the field is never served from the cache.
    @Test func valuesThatDifferInSuchAByteNeverShareACopy() async throws {
        let heads = Heads()
        let origin = try await RawServer.start { connection in
            try await heads.serve(connection) { head in
                let name = head.contains(0xE9) ? "e9" : "e8"
                return "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nVary: X-Name\r\nContent-Length: 2\r\n\r\n\(name)"
            }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port))
        for _ in 0..<2 {
            for (name, body) in [(UInt8(0xE9), "e9"), (0xE8, "e8")] {
                let reply = try await ask("/name", name: [name], server, port: origin.port)
                #expect(reply.head.status == 200 && reply.body == body, "\(body): \(reply.head.status) \(reply.body)")
            }
        }
        #expect(heads.all.count == 4, "\(heads.all.count) requests")
        try await #expect(server.change("PUT", "/v1/network", ["mode": "offline"]).status == 200)
        try await #expect(ask("/name", name: [0xE9], server, port: origin.port).head.status == 504)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }

    /// A response that does not vary by the field is stored as usual.
    @Test func suchAFieldKeepsNoCopyAway() async throws {
        let heads = Heads()
        let origin = try await RawServer.start { connection in
            try await heads.serve(connection) { _ in "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 2\r\n\r\nok" }
        }
        let server = try await ServerProcess.start(ServerSettings(upstream: origin.port))
        for _ in 0..<2 { try await #expect(ask("/name", name: [0xE9], server, port: origin.port).body == "ok") }
        #expect(heads.all.count == 1)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        await origin.stop()
    }
}
