// The libcurl origin against a scripted TCP server: the bytes on the wire, and the classification of failures (docs/outbox.md#evidence).
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct CurlOriginTests {
    private let curl: CurlOrigin

    init() throws { curl = try CurlOrigin(addresses: AddressPolicy(deny: []), ownPorts: OwnPorts(), logger: .silent) }

    private func head(
        _ server: RawServer, _ method: HTTPRequest.Method = .get, _ target: String = "/", _ fields: HTTPFields = [:]
    )
        -> RequestHead
    {
        RequestHead(
            method: method, origin: OriginAddress(scheme: .http, host: "127.0.0.1", port: server.port), target: target, fields: fields)
    }

    private func text(_ reply: OriginReply) async throws -> String { String(buffer: try await reply.body.collect(upTo: 1 << 24).bytes) }

    /// Returns the failure of one request.
    private func failure(_ request: OutboundRequest) async -> TransferFailure? {
        do {
            _ = try await curl.send(request)
            return nil
        } catch { return error }
    }

    /// Starts a server that records each request head and answers depending on it.
    private func server(_ heads: Heads, _ answer: @escaping @Sendable (String) -> String = { _ in ok }) async throws -> RawServer {
        try await .start { connection in
            heads.connect()
            while true {
                let head = try await connection.read(through: "\r\n\r\n")
                heads.add(head)
                try await connection.send(answer(head))
            }
        }
    }

    final class Heads: Sendable {
        private let seen = Mutex<(heads: [String], connections: Int)>(([], 0))
        func add(_ head: String) { seen.withLock { $0.heads.append(head) } }
        func connect() { seen.withLock { $0.connections += 1 } }
        var all: [String] { seen.withLock { $0.heads } }
        var connections: Int { seen.withLock { $0.connections } }
    }

    @Test func howLongABodyTookIsTold() async throws {
        let server = try await server(Heads()) { _ in
            "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 100_000)
        }
        let told = Mutex<[(bytes: Int64, duration: Duration)]>([])
        let request = OutboundRequest(head: head(server), measured: { bytes, duration in told.withLock { $0.append((bytes, duration)) } })
        try await #expect(text(curl.send(request)).utf8.count == 100_000)
        try await eventually("the measure") { told.withLock { $0.count } == 1 }
        #expect(told.withLock { $0.allSatisfy { $0.bytes == 100_000 && $0.duration > .zero && $0.duration < .seconds(10) } })
    }

    @Test func whatIsPooledIsClosedWhenNothingIsAsked() async throws {
        let curl = try CurlOrigin(
            addresses: AddressPolicy(deny: []), ownPorts: OwnPorts(), poolLimit: .milliseconds(50), logger: .silent)
        let (heads, closed) = (Heads(), Heads())
        let server = try await RawServer.start { connection in
            heads.connect()
            defer { closed.connect() }
            while true {
                heads.add(try await connection.read(through: "\r\n\r\n"))
                try await connection.send(Self.ok)
            }
        }
        for asked in 1...2 {
            try await #expect(text(curl.send(OutboundRequest(head: head(server)))) == "pearl")
            try await eventually("the end of a connection") { closed.connections == asked }
        }
        #expect(heads.connections == 2 && heads.all.count == 2)
        curl.close()
    }

    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\npearl"

    @Test(arguments: ["/", "/a/../b?x=%2F%7e", "/a//b/./c", "/%61?q=1&q=2&", "/a;p=1,2'()*!$@:", "/?[x]=1", "*"])
    func theTargetsBytesStayAsTheyAre(target: String) async throws {
        let heads = Heads()
        let server = try await server(heads)
        let reply = try await curl.send(OutboundRequest(head: head(server, target == "*" ? .options : .get, target)))
        #expect(reply.head.status == 200 && reply.length == 5)
        #expect(try await text(reply) == "pearl")
        #expect(heads.all.first?.hasPrefix("\(target == "*" ? "OPTIONS" : "GET") \(target) HTTP/1.1\r\n") == true)
    }

    @Test func fieldsGoOutAsTheyCameAndNoneIsAdded() async throws {
        let heads = Heads()
        let server = try await server(heads)
        var fields = HTTPFields()
        for (name, value) in [("X-b", "2"), ("x-A", "1"), ("X-b", "3"), ("X-Empty", "")] {
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        _ = try await curl.send(OutboundRequest(head: head(server, .get, "/", fields)))
        #expect(heads.all == ["GET / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nX-b: 2\r\nx-A: 1\r\nX-b: 3\r\nX-Empty:\r\n\r\n"])
    }

    @Test func aHeadHasNoBodyAndItsLength() async throws {
        let heads = Heads()
        let server = try await server(heads) { _ in "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" }
        for _ in 0..<2 {
            let reply = try await curl.send(OutboundRequest(head: head(server, .head)))
            #expect(reply.length == 5)
            #expect(try await text(reply) == "")
        }
        #expect(heads.all.count == 2 && heads.connections == 1)
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch, .delete])
    func aBodyOfKnownLengthIsSentWithIt(method: HTTPRequest.Method) async throws {
        let server = try await RawServer.start { connection in
            let head = try await connection.read(through: "\r\n\r\n")
            let body = String(decoding: try await connection.read(bytes: 5), as: UTF8.self)
            let echo = (head.contains("Content-Length: 5\r\n") && !head.contains("chunked") && !head.contains("Expect")) ? body : head
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(echo.utf8.count)\r\n\r\n\(echo)")
        }
        let reply = try await curl.send(OutboundRequest(head: head(server, method), body: .bytes(ByteBuffer(string: "shell"))))
        #expect(try await text(reply) == "shell")
    }

    @Test func aBodyOfUnknownLengthIsChunked() async throws {
        let server = try await RawServer.start { connection in
            let head = try await connection.read(through: "\r\n\r\n")
            let body = try await connection.read(through: "0\r\n\r\n")
            let isChunked = head.contains("Transfer-Encoding: chunked\r\n") && !head.contains("Content-Length")
            try await connection.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(isChunked && body.contains("2\r\nab\r\n") ? "y" : "n")")
        }
        let pipe = BodyPipe()
        async let reply = curl.send(OutboundRequest(head: head(server, .post), body: .stream(pipe, length: nil)))
        for text in ["ab", "cde"] { pipe.offer(ByteBuffer(string: text)) }
        pipe.finish()
        #expect(try await text(reply) == "y")
    }

    /// Whether the client takes them is asked where they are sent.
    @Test func aChunkedAnswerIsDecodedAndItsTrailersKept() async throws {
        let server = try await server(Heads()) { _ in
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\npea\r\n2;x=1\r\nrl\r\n0\r\nX-Trailer: 1\r\nSet-Cookie: a\r\n\r\n"
        }
        let reply = try await curl.send(OutboundRequest(head: head(server)))
        #expect(reply.length == nil)
        #expect(try await text(reply) == "pearl")
        #expect(reply.body.trailers.map(\.name.rawName) == ["X-Trailer"])
    }

    @Test func anAnswerThatEndsWithItsConnectionIsWhole() async throws {
        let server = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.0 200 OK\r\n\r\npearl")
        }
        let reply = try await curl.send(OutboundRequest(head: head(server)))
        #expect(try await text(reply) == "pearl")
    }

    @Test func anEncodedBodyIsNotDecoded() async throws {
        let server = try await server(Heads()) { _ in "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nxyz" }
        #expect(try await text(try await curl.send(OutboundRequest(head: head(server)))) == "xyz")
    }

    @Test func interimResponsesArePassedOn() async throws {
        let server = try await server(Heads()) { _ in "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\(Self.ok)" }
        let interim = Mutex<[Int]>([])
        let reply = try await curl.send(OutboundRequest(head: head(server)) { head in interim.withLock { $0.append(head.status) } })
        #expect(reply.head.status == 200 && interim.withLock { $0 } == [103])
    }

    @Test(arguments: [301, 401, 500])
    func noAnswerIsActedUpon(status: Int) async throws {
        let heads = Heads()
        let server = try await server(heads) { _ in
            "HTTP/1.1 \(status) X\r\nLocation: /other\r\nWWW-Authenticate: Basic\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n"
        }
        for _ in 0..<2 { #expect(try await curl.send(OutboundRequest(head: head(server))).head.status == status) }
        #expect(heads.all.count == 2 && heads.all[0] == heads.all[1])
    }

    // MARK: failures

    @Test func nobodyListens() async throws {
        let server = try await server(Heads())
        await server.stop()
        let failure = await failure(OutboundRequest(head: head(server)))
        #expect(failure?.kind == .refused && failure?.sent == .no)
    }

    @Test func aNameThatDoesNotExist() async {
        let request = RequestHead(method: .get, origin: OriginAddress(scheme: .http, host: "no-such-host.invalid"), target: "/")
        let failure = await failure(OutboundRequest(head: request))
        #expect(failure?.kind == .dns && failure?.sent == .no)
    }

    @Test func aCloseInsteadOfAnAnswerMayHaveArrived() async throws {
        let server = try await RawServer.start { _ = try await $0.read(through: "\r\n\r\n") }
        let failure = await failure(
            OutboundRequest(head: head(server, .post), body: .bytes(ByteBuffer(string: "x")), needsFreshConnection: true))
        #expect(failure?.kind == .reset && failure?.sent == .yes)
    }

    @Test func aCloseAtOnceIsAReset() async throws {
        let server = try await RawServer.start { _ in }
        #expect(await failure(OutboundRequest(head: head(server)))?.kind == .reset)
    }

    @Test func aKeptConnectionThatHasGoneStaleIsReplaced() async throws {
        let heads = Heads()
        let server = try await RawServer.start { connection in
            heads.connect()
            heads.add(try await connection.read(through: "\r\n\r\n"))
            try await connection.send(Self.ok)
        }
        for _ in 0..<3 { #expect(try await text(try await curl.send(OutboundRequest(head: head(server)))) == "pearl") }
        #expect(heads.connections == 3)
    }

    @Test func aCloseInTheMiddleOfTheHead() async throws {
        let server = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Le")
        }
        #expect(await failure(OutboundRequest(head: head(server)))?.sent == .yes)
    }

    @Test func silenceAfterTheRequestIsAFirstByteTimeOut() async throws {
        let server = try await RawServer.start { connection in _ = try await connection.readToEnd() }
        let timeouts = UpstreamTimeouts(firstByte: .milliseconds(200))
        let failure = await failure(OutboundRequest(head: head(server), timeouts: timeouts))
        #expect(failure?.kind == .firstByteTimeout && failure?.sent == .yes)
    }

    @Test func silenceWithinABodyIsAnIdleTimeOut() async throws {
        let server = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\npea")
            _ = try await connection.readToEnd()
        }
        let reply = try await curl.send(OutboundRequest(head: head(server), timeouts: UpstreamTimeouts(idle: .milliseconds(200))))
        #expect(try await reply.body.next().map { String(buffer: $0) } == "pea")
        await #expect { try await reply.body.next() } throws: { ($0 as? TransferFailure)?.kind == .idleTimeout }
    }

    @Test(arguments: [
        "Content-Length: 50\r\n\r\npea", "Transfer-Encoding: chunked\r\n\r\n3\r\npea\r\n",
        "Transfer-Encoding: chunked\r\n\r\n3\r\npea\r\nzz\r\n",
    ])
    func aBodyCutShortFailsAfterItsBytes(rest: String) async throws {
        let server = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\n\(rest)")
        }
        let reply = try await curl.send(OutboundRequest(head: head(server)))
        #expect(reply.head.status == 200)
        await #expect { try await reply.body.drain() } throws: { ($0 as? TransferFailure)?.sent == .yes }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 101 S\r\n\r\n",
    ])
    func anIllegalAnswerIsAProtocolError(answer: String) async throws {
        let server = try await server(Heads()) { _ in answer }
        let failure = await failure(OutboundRequest(head: head(server)))
        #expect(failure?.kind == .protocolError && failure?.sent == .yes)
    }

    @Test func aDeniedAddressIsNeverConnectedTo() async throws {
        let heads = Heads()
        let server = try await server(heads)
        let failure = await failure(OutboundRequest(head: head(server), allowsLoopback: false))
        #expect(failure?.kind == .denied && failure?.sent == .no)
        #expect(heads.connections == 0)
    }

    // MARK: connections

    @Test(arguments: [(false, 1), (true, 3)])
    func connectionsAreKeptUnlessAFreshOneIsAskedFor(isFresh: Bool, connections: Int) async throws {
        let heads = Heads()
        let server = try await server(heads)
        for _ in 0..<3 {
            _ = try await text(try await curl.send(OutboundRequest(head: head(server), needsFreshConnection: isFresh)))
        }
        #expect(heads.connections == connections)
    }

    /// Three quarters of a host's transfers are one client's; what is beyond waits, and is sent when its turn comes.
    @Test func oneClientLeavesTransfersForOthers() async throws {
        let gate = Gate()
        let arrived = Mutex(0)
        let server = try await RawServer.start { connection in
            let head = try await connection.read(through: "\r\n\r\n")
            arrived.withLock { $0 += 1 }
            if head.hasPrefix("GET /slow") { await gate.opened() }
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        }
        let shares = ClientShares(exchanges: 1000, connections: 1000)
        let (ann, bob) = (shares.account(of: .process(1)), shares.account(of: .process(2)))
        let (origin, share) = (head(server).origin, 192)
        @Sendable func ask(_ path: String, for account: ClientAccount) async throws -> String {
            var request = OutboundRequest(head: RequestHead(method: .get, origin: origin, target: path))
            request.account = account
            return try await text(try await curl.send(request))
        }
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<share + 3 { group.addTask { try await ask("/slow/\(number)", for: ann) } }
            try await eventually("its share is under way") { arrived.withLock { $0 } == share }
            #expect(try await ask("/quick", for: bob) == "ok")
            #expect(arrived.withLock { $0 } == share + 1, "the rest of the first client's waits")
            let late = Task { try await ask("/slow/late", for: ann) }
            late.cancel()
            await #expect(throws: TransferFailure.self) { try await late.value }
            gate.open()
            for try await body in group { #expect(body == "ok") }
        }
        #expect(arrived.withLock { $0 } == share + 4, "what was cancelled was not sent")
    }

    /// The first sending may have been applied.
    @Test func aRequestThatIsSentAgainSaysSo() async throws {
        let heads = Heads()
        let server = try await RawServer.start { connection in
            while true {
                heads.add(try await connection.read(through: "\r\n\r\n"))
                // The first connection dies with the second request.
                if heads.all.count == 2 { return }
                try await connection.send(Self.ok)
            }
        }
        let first = try await curl.send(OutboundRequest(head: head(server)))
        _ = try await text(first)
        let second = try await curl.send(OutboundRequest(head: head(server)))
        #expect(heads.all.count == 3 && first.wire?.isRepeated == false && second.wire?.isRepeated == true)
    }

    @Test func theEnvironmentsProxiesAreIgnored() async throws {
        let (heads, wrong) = (Heads(), Heads())
        let (server, proxy) = (try await server(heads), try await server(wrong))
        setenv("http_proxy", "http://127.0.0.1:\(proxy.port)", 1)
        setenv("all_proxy", "http://127.0.0.1:\(proxy.port)", 1)
        defer { for name in ["http_proxy", "all_proxy"] { unsetenv(name) } }
        _ = try await curl.send(OutboundRequest(head: head(server)))
        #expect(heads.all.count == 1 && wrong.connections == 0)
    }

    /// A request to a proxy has its target in absolute form (RFC 9112 §3.2.2).
    @Test func aParentProxyIsAskedForTheWholeURL() async throws {
        let heads = Heads()
        let proxy = try await server(heads)
        let request = RequestHead(method: .get, origin: OriginAddress(scheme: .http, host: "api.test"), target: "/a?b=%2F")
        let reply = try await curl.send(OutboundRequest(head: request, via: "http://127.0.0.1:\(proxy.port)"))
        #expect(reply.head.status == 200)
        #expect(heads.all.first?.hasPrefix("GET http://api.test/a?b=%2F HTTP/1.1\r\nHost: api.test\r\n") == true, "\(heads.all)")
    }

    @Test func tenTransfersAtOnceAllComeBack() async throws {
        let server = try await server(Heads()) { head in
            let path = head.split(separator: " ")[1]
            return "HTTP/1.1 200 OK\r\nContent-Length: \(path.utf8.count)\r\n\r\n\(path)"
        }
        try await withThrowingTaskGroup(of: (String, String).self) { group in
            for number in 0..<10 {
                group.addTask {
                    ("/\(number)", try await text(try await curl.send(OutboundRequest(head: head(server, .get, "/\(number)")))))
                }
            }
            for try await (target, body) in group { #expect(target == body) }
        }
    }

    /// With a consumer that does not read, the upstream can send no more than the buffers hold.
    @Test func backPressureReachesTheUpstream() async throws {
        let sent = Mutex(0)
        let total = 64 * 1024 * 1024
        let server = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let block = [UInt8](repeating: 7, count: 256 * 1024)
            for _ in 0..<(total / block.count) {
                try await connection.send(block)
                sent.withLock { $0 += block.count }
            }
            _ = try await connection.readToEnd()
        }
        let reply = try await curl.send(OutboundRequest(head: head(server)))
        var last = -1
        try await eventually("the upstream stands still") {
            let now = sent.withLock { $0 }
            defer { last = now }
            try await Task.sleep(for: .milliseconds(100))
            return now == last && now > 0
        }
        #expect(sent.withLock { $0 } < 24 * 1024 * 1024)
        var received = 0
        while let chunk = try await reply.body.next() { received += chunk.readableBytes }
        #expect(received == total)
    }

    /// A server that serves one connection at a time gets to the next one behind a probe.
    @Test func aRequestThatKeepsNoConnectionClosesIt() async throws {
        let (heads, isClosed) = (Heads(), Flag())
        let server = try await RawServer.start { connection in
            heads.add(try await connection.read(through: "\r\n\r\n"))
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            _ = try await connection.readToEnd()
            isClosed.raise()
        }
        var probe = OutboundRequest(head: head(server, .head))
        probe.keepsConnection = false
        let reply = try await curl.send(probe)
        try await #expect(text(reply).isEmpty)
        try await eventually("the upstream sees the end", within: .seconds(5)) { isClosed.isRaised }
        #expect(heads.all.count == 1)
    }

    @Test func abandoningABodyClosesItsConnection() async throws {
        let isClosed = Flag()
        let server = try await RawServer.start { connection in
            _ = try await connection.read(through: "\r\n\r\n")
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\npea")
            _ = try await connection.readToEnd()
            isClosed.raise()
        }
        let reply = try await curl.send(OutboundRequest(head: head(server)))
        _ = try await reply.body.next()
        reply.body.abandon()
        try await eventually("the upstream sees the end", within: .seconds(5)) { isClosed.isRaised }
    }

    @Test func cancellingTheSenderEndsTheTransfer() async throws {
        let (heads, isClosed) = (Heads(), Flag())
        let server = try await RawServer.start { connection in
            heads.add(try await connection.read(through: "\r\n\r\n"))
            _ = try await connection.readToEnd()
            isClosed.raise()
        }
        let sender = Task { await failure(OutboundRequest(head: head(server))) }
        try await eventually("the request is there") { heads.all.count == 1 }
        sender.cancel()
        #expect(await sender.value?.kind == .cancelled)
        try await eventually("the upstream sees the end", within: .seconds(5)) { isClosed.isRaised }
    }

    @Test func aClosedOriginFailsWhatIsUnderWayAndRefusesWhatComesAfter() async throws {
        let heads = Heads()
        let server = try await RawServer.start { connection in
            heads.add(try await connection.read(through: "\r\n\r\n"))
            _ = try await connection.readToEnd()
        }
        let own = try CurlOrigin(addresses: AddressPolicy(deny: []), ownPorts: OwnPorts(), logger: .silent)
        let request = OutboundRequest(head: head(server))
        for when in ["under way", "after"] {
            let isTold = Flag()
            let sender = Task { do { _ = try await own.send(request) } catch { isTold.raise() } }
            if when == "under way" {
                try await eventually("the request is there") { heads.all.count == 1 }
                own.close()
            }
            await #expect(throws: Never.self, "\(when)") { try await eventually("it is told", within: .seconds(3)) { isTold.isRaised } }
            sender.cancel()
        }
    }
}
