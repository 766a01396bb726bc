// What clients share over all connections: at each limit and one past it, and who gives way (docs/security-model.md#shares-of-clients).
import Foundation
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP2
import NIOPosix
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolNetwork

@Suite(.timeLimit(.minutes(1)), .serialized)
struct SharedLimitTests {
    private let get = "GET /slow HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    private func held(_ gate: Gate) -> ScriptedOrigin.Rule {
        { $0.head.target.hasPrefix("/slow") ? .held(gate, .ok("pearl", [.cacheControl: "no-store"])) : .ok() }
    }

    // MARK: requests

    @Test func requestsPastTheShareAreAnswered503() async throws {
        let gate = Gate()
        let pool = try await Pool(rule: held(gate)) { $0.proxy.limits.exchanges = 8 }
        var clients: [RawConnection] = []
        for number in 0..<6 {
            let client = try await pool.connect()
            try await client.send(get.replacing("/slow", with: "/slow/\(number)"))
            clients.append(client)
        }
        try await eventually("all are under way") { pool.origin.sent.count == 6 }
        let late = try await pool.connect()
        try await late.send(get)
        let (head, body) = try await late.response()
        #expect(head.status == 503 && head["retry-after"] == "1" && body.contains("urn:rockpool:problem:busy"), "\(body)")
        #expect(try await late.readToEnd(within: .seconds(5)) == "")
        gate.open()
        for client in clients { #expect(try await client.response().body == "pearl") }
        let next = try await pool.connect()
        try await next.send(get)
        #expect(try await next.response().head.status == 200)
    }

    /// A hit that is answered before it is decoded takes no place, so that it is answered whatever else is under way.
    @Test func whatIsAnsweredAtOnceNeedsNoPlace() async throws {
        let gate = Gate()
        let pool = try await Pool(
            rule: { $0.head.target == "/slow" ? .held(gate, .ok()) : .ok("pearl", [.cacheControl: "max-age=60"]) }
        ) { $0.proxy.limits.exchanges = 1 }
        let client = try await pool.connect()
        for _ in 0..<3 {
            try await client.send("GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            #expect(try await client.response().body == "pearl")
        }
        let other = try await pool.connect()
        try await other.send(get)
        try await eventually("it is under way") { pool.origin.sent.count == 2 }
        try await client.send("GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        #expect(try await client.response().body == "pearl")
        try await client.send("GET /b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        #expect(try await client.response().head.status == 503)
        gate.open()
    }

    /// Clients of this machine are told apart by their processes as soon as it matters.
    @Test func oneProcessLeavesRoomForOthers() async throws {
        let gate = Gate()
        let process = Mutex(Int32(1))
        let pool = try await Pool(
            rule: held(gate), configure: { $0.proxy.limits.exchanges = 64 },
            clients: { $0.map { _ in .process(process.withLock { $0 }) } })
        var clients: [RawConnection] = []
        var refused = 0
        while refused == 0, clients.count < 64 {
            let client = try await pool.connect()
            try await client.send(get.replacing("/slow", with: "/slow/\(clients.count)"))
            try await eventually("it is under way, or refused") {
                if pool.origin.sent.count == clients.count + 1 { return true }
                guard client.hasReceived else { return false }
                refused += 1
                return true
            }
            clients.append(client)
        }
        // Three quarters, and a little that counts for the address, because it began before its process was known.
        #expect((48...56).contains(pool.origin.sent.count), "\(pool.origin.sent.count)")
        process.withLock { $0 = 2 }
        let before = pool.origin.sent.count
        let other = try await pool.connect()
        try await other.send(get)
        try await eventually("another process finds room") { pool.origin.sent.count == before + 1 }
        gate.open()
        #expect(try await other.response().head.status == 200)
    }

    // MARK: streams

    @Test func aStreamPastTheShareIsRefusedAlone() async throws {
        let gate = Gate()
        let pool = try await Pool.intercepting(rule: held(gate)) { $0.proxy.limits.exchanges = 8 }
        let client = try await pool.tunnel(protocols: ["h2"])
        try await client.send(RawFrame.preface)
        for number in 0..<6 { try await client.send(RawFrame.get(2 * number + 1, "/slow/\(number)")) }
        try await eventually("all are under way") { pool.origin.sent.count == 6 }
        try await client.send(RawFrame.get(13, "/slow/6"))
        let refusal = try await client.frame(.reset, .goAway, .headers)
        #expect(refusal.kind == .reset && refusal.stream == 13 && refusal.code == 7, "REFUSED_STREAM")
        // The body of a refused request does no harm.
        let head = [(":method", "POST"), (":scheme", "https"), (":authority", "api.test"), (":path", "/a")]
        try await client.send(RawFrame.head(15, head, endsStream: false))
        try await client.send(RawFrame(.data, flags: 1, stream: 15, payload: [1, 2, 3]))
        #expect(try await client.frame(.reset, .goAway).stream == 15)
        gate.open()
        for _ in 0..<6 { #expect(try await client.frame(.headers, .goAway).kind == .headers) }
        try await eventually("there is room again") {
            pool.listeners.connections.shares?.isQuiet == true
        }
        try await client.send(RawFrame.get(17, "/a"))
        #expect(try await client.frame(.headers, .reset, .goAway).stream == 17)
    }

    /// The connection stops being read while its streams hold much that nobody reads and the client has more than its share.
    @Test func unreadBodiesStopTheirConnectionUnderPressure() throws {
        let memory = SharedBudget(limit: .kib(512))
        let (share, reads) = (memory.share(), ReadCounter())
        let window = ConnectionWindow(target: .mib(1)) { share }
        let channel = EmbeddedChannel(handlers: [reads, window])
        let frame = { HTTP2Frame(streamID: $0, payload: .data(.init(data: .byteBuffer(ByteBuffer(repeating: 1, count: .kib(64)))))) }
        try channel.writeInbound(frame(1))
        channel.read()
        #expect(reads.count == 1 && memory.used == .kib(64), "as much as a connection may always hold")
        for _ in 0..<6 { try channel.writeInbound(frame(3)) }
        channel.read()
        #expect(reads.count == 1 && memory.used == .kib(7 * 64))
        window.delivered(.kib(64), on: 3)
        #expect(reads.count == 2, "the client has its share again")
        channel.read()
        channel.pipeline.fireUserInboundEventTriggered(StreamClosedEvent(streamID: 3, reason: .cancel))
        channel.pipeline.fireUserInboundEventTriggered(StreamClosedEvent(streamID: 1, reason: nil))
        #expect(memory.used == 0)
        _ = try? channel.finish()
    }

    // MARK: tunnels

    private func connect(_ pool: Pool, to port: Int) async throws -> RawConnection {
        let client = try await RawConnection.open(pool.proxy)
        try await client.send("CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n")
        return client
    }

    @Test func silentTunnelsGiveWayToTunnelsAndRequests() async throws {
        let far = try await RawServer.start { connection in _ = try await connection.readToEnd() }
        let pool = try await Pool {
            $0.proxy.connectPorts = [far.port]
            $0.proxy.limits.connections = 8
        }
        var tunnels: [RawConnection] = []
        // Three quarters of 8 are for tunnels, and one client leaves one of these for others.
        for _ in 0..<5 {
            tunnels.append(try await connect(pool, to: far.port))
            #expect(try await tunnels[tunnels.count - 1].read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
        }
        let early = try await connect(pool, to: far.port)
        #expect(try await early.response().head.status == 503, "all of the client's share are in use")
        var next: RawConnection?
        try await eventually("a tunnel has been silent for long enough") {
            let client = try await connect(pool, to: far.port)
            guard try await client.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 200 ") else { return false }
            next = client
            return true
        }
        #expect(try await tunnels[0].readToEnd(within: .seconds(5)) == "", "the first has been silent longest")
        #expect(next != nil && pool.listeners.tunnelCount == 5)
        try await eventually("a request finds room too") {
            let request = try await pool.connect()
            try await request.send("GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return try await request.response().head.status == 200
        }
        await far.stop()
    }

    // MARK: names

    private var loop: any EventLoop { MultiThreadedEventLoopGroup.singleton.next() }

    @Test func anAddressIsNotLookedUp() async throws {
        let lookups = NameLookups { _ in throw TransferFailure(kind: .dns, sent: .no, detail: "asked") }
        let resolver = AddressResolver(addresses: AddressPolicy(deny: []), lookups: lookups)
        for (host, text) in [("192.0.2.7", "192.0.2.7"), ("::1", "::1"), ("2001:db8::7", "2001:db8::7")] {
            let found = try await resolver.resolve(host, port: 80, loopbackAllowed: true, on: loop).get()
            #expect(found.map(\.ipAddress) == [text] && found.first?.port == 80)
        }
        await #expect(throws: TransferFailure.self) {
            try await resolver.resolve("127.0.0.1", port: 80, loopbackAllowed: false, on: loop).get()
        }
        await #expect(throws: TransferFailure.self) {
            try await resolver.resolve("a.test", port: 80, loopbackAllowed: true, on: loop).get()
        }
    }

    /// Names that hang occupy one thread each, however often they are asked for, and delay no other name.
    @Test func namesThatHangDelayNoOthers() async throws {
        let hanging = DispatchGate()
        let asked = Mutex<[String: Int]>([:])
        let address = try SocketAddress(ipAddress: "192.0.2.7", port: 0)
        let lookups = NameLookups { host in
            asked.withLock { $0[host, default: 0] += 1 }
            if host.hasPrefix("slow") { hanging.wait() }
            return [address]
        }
        let slow = (0..<100).map { lookups.addresses(of: "slow\($0 % 20).test", for: .process(1), on: loop) }
        try await eventually("they are looked up") { asked.withLock { $0.count } == 20 }
        #expect(try await lookups.addresses(of: "quick.test", for: .process(1), on: loop).get() == [address])
        #expect(asked.withLock { $0.values.max() } == 1)
        hanging.open()
        for future in slow { #expect(try await future.get() == [address]) }
    }

    /// The names of one client leave threads for others, also for the names that it waits for itself.
    @Test func oneClientDoesNotTakeAllLookups() async throws {
        let hanging = DispatchGate()
        let asked = Mutex(0)
        let address = try SocketAddress(ipAddress: "192.0.2.7", port: 0)
        let lookups = NameLookups { _ in
            asked.withLock { $0 += 1 }
            hanging.wait()
            return [address]
        }
        let share = NameLookups.limit * 3 / 4
        let slow = (0..<share + 5).map { lookups.addresses(of: "\($0).test", for: .process(1), on: loop) }
        try await eventually("its share is in use") { asked.withLock { $0 } == share }
        let other = lookups.addresses(of: "\(share + 4).test", for: .process(2), on: loop)
        try await eventually("another client's begins") { asked.withLock { $0 } == share + 1 }
        hanging.open()
        for future in slow + [other] { #expect(try await future.get() == [address]) }
        #expect(asked.withLock { $0 } == share + 5, "the name that both asked for was looked up once")
    }
}

/// Lets blocked threads go on.
private final class DispatchGate: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }

    func wait() {
        while !isOpen.withLock({ $0 }) { usleep(1000) }
    }
}

private final class ReadCounter: ChannelOutboundHandler {
    typealias OutboundIn = HTTP2Frame
    private(set) var count = 0

    func read(context: ChannelHandlerContext) { count += 1 }
}
