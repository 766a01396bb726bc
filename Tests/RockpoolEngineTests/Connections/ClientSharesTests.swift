// What clients share, each limit at it and one past it, and who gives way (docs/security-model.md#shares-of-clients).
import Foundation
import NIOCore
import NIOEmbedded
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@testable import RockpoolEngine

struct ClientSharesTests {
    private let ann = ClientID.process(1)
    private let bob = ClientID.process(2)

    @Test func oneClientGetsThreeQuartersOfTheExchangesAndAnotherFindsRoom() throws {
        let shares = ClientShares(exchanges: 100, connections: 1000)
        let account = shares.account(of: ann)
        var places = (0..<75).compactMap { _ in account.begin(.stream) }
        #expect(places.count == 75 && account.begin(.stream) == nil && account.begin(.request) == nil)
        #expect(shares.account(of: bob).begin(.stream) != nil)
        places.removeLast()
        #expect(account.begin(.request) != nil, "what has ended gives its place back")
        places = []
        #expect(shares.exchanges.used == 0 && shares.busy.used == 0)
    }

    /// Whatever kind keeps connections busy, a quarter of them stays for other kinds and other clients.
    @Test(arguments: [ExchangePlace.Kind.request, .streams, .tunnel]) func noKindTakesMoreThanThreeQuarters(kind: ExchangePlace.Kind) {
        let shares = ClientShares(exchanges: 1000, connections: 100)
        let clients = (1...20).map { shares.account(of: .process($0)) }
        var places = (0..<10).flatMap { _ in clients.compactMap { $0.begin(kind) } }
        let others: [ExchangePlace.Kind] = kind == .tunnel ? [.request, .streams] : [.tunnel]
        for other in others { #expect(shares.account(of: ann).begin(other) != nil) }
        for newcomer in Int32(100)..<200 { places += [shares.account(of: .process(newcomer)).begin(kind)].compactMap(\.self) }
        #expect(places.count == 75)
        places = []
        #expect(shares.requests.used == 0 && shares.tunnels.used == 0 && shares.busy.used == 0)
    }

    /// Also where the limit of exchanges is no lower than that of connections, as with few descriptors.
    @Test(arguments: [ExchangePlace.Kind.request, .streams, .tunnel]) func noClientTakesAllOfAKind(kind: ExchangePlace.Kind) {
        for limit in 5...120 {
            let shares = ClientShares(exchanges: 1000, connections: limit)
            let account = shares.account(of: ann)
            let places = (0..<limit).compactMap { _ in account.begin(kind) }
            #expect(places.count >= limit / 2, "\(limit)")
            #expect(shares.account(of: bob).begin(kind) != nil, "\(limit): \(places.count)")
        }
    }

    @Test func aSilentTunnelGivesWay() async throws {
        let shares = ClientShares(exchanges: 4, connections: 100)
        let account = shares.account(of: ann)
        let closed = Mutex<[Int]>([])
        let tunnels = try (0..<3).map { number in
            let tunnel = try #require(account.begin(.tunnel))
            tunnel.opened { closed.withLock { $0.append(number) } }
            return tunnel
        }
        #expect(account.begin(.request) == nil, "none is silent for long enough")
        try await Task.sleep(for: .milliseconds(Int(SilentTunnel.patience.milliseconds) + 50))
        tunnels[0].noteUse()
        let place = account.begin(.request)
        let given = closed.withLock { $0 }
        #expect(place != nil && (given == [1] || given == [2]), "not the one in use")
        tunnels[given.first ?? 0].release()
        #expect(shares.exchanges.used == 3, "a place is given back once")
    }

    @Test func bytesInMemoryAreSharedToo() throws {
        let memory = SharedBudget(limit: 1000)
        let shares = ClientShares(exchanges: 10, connections: 10, memory: memory)
        do {
            let held = HeldBytes(of: shares.account(of: ann).memory)
            #expect(held.take(750) && !held.take(1))
            #expect(HeldBytes(of: shares.account(of: bob).memory).take(187))
            held.release()
            #expect(held.take(1) && memory.used == 1)
        }
        #expect(memory.used == 0, "what is forgotten is given back")
    }

    @Test func anAccountLivesAsLongAsSomethingOfItsClient() throws {
        let shares = ClientShares(exchanges: 10, connections: 10)
        var account: ClientAccount? = shares.account(of: ann)
        var place = account?.begin(.stream)
        account = nil
        #expect(place != nil && shares.exchanges.used == 1)
        place = nil
        #expect(shares.exchanges.used == 0)
        account = shares.account(of: ann)
        #expect(account?.begin(.stream) != nil)
    }

    // MARK: who the clients are

    private func connection(_ open: OpenConnections, _ client: ClientID) async throws -> OpenConnection {
        let channel = NIOAsyncTestingChannel()
        try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1))
        return try #require(open.admit(channel, client: client))
    }

    /// The system is asked once much is in use, about all clients of this machine at once, and not about others.
    @Test func processesAreAskedForUnderPressure() async throws {
        let shares = ClientShares(exchanges: 160, connections: 160)
        let asked = Mutex(0)
        let open = OpenConnections(limit: 160, shares: shares) { connections in
            asked.withLock { $0 += connections.count }
            return connections.indices.map { .process(Int32($0) + 1) }
        }
        let loopback = ClientID.address(try #require(IPAddress("127.0.0.1")))
        var local: [OpenConnection] = []
        for _ in 0..<4 { local.append(try await connection(open, loopback)) }
        let remote = try await connection(open, .address(try #require(IPAddress("192.0.2.1"))))
        let loop = NIOAsyncTestingEventLoop()
        // A sixteenth, and one more.
        var places = try (0..<11).map { _ in try #require(try local[0].place(.stream)) }
        #expect(asked.withLock { $0 } == 0 && open.naming(local[0], on: loop) == nil)
        places.append(try #require(try local[0].place(.stream)))
        try await eventually("they are known") { local.allSatisfy { if case .process? = $0.account?.client { true } else { false } } }
        #expect(asked.withLock { $0 } == 4 && remote.account?.mayBeNamed == false)
        #expect(Set(local.map { $0.account?.client }).count == 4)
        // A quarter: now a new connection waits until its client is known.
        for _ in 0..<30 { places.append(try #require(try remote.place(.stream))) }
        let late = try await connection(open, loopback)
        #expect(open.naming(remote, on: loop) == nil)
        #expect(open.naming(late, on: loop) != nil)
        try await eventually("it is known") { late.account?.client == .process(1) }
        await loop.run()
    }

    /// What one process has begun before it was known is its own from then on, and keeps nobody else out meanwhile.
    @Test func whatIsUnderWayMovesToTheProcess() async throws {
        let shares = ClientShares(exchanges: 100, connections: 1000)
        let open = OpenConnections(limit: 1000, shares: shares) { connections in
            connections.map { $0.isEmpty ? nil : .process(1) }
        }
        let address = ClientID.address(try #require(IPAddress("127.0.0.1")))
        let (hog, other) = (try await connection(open, address), try await connection(open, address))
        var places: [ExchangePlace] = []
        while places.count < 75 { places.append(try #require(try hog.place(.request))) }
        hog.belongs(to: shares.account(of: ann))
        other.belongs(to: shares.account(of: bob))
        #expect(throws: Refusal.self) { try hog.place(.request) }
        #expect(throws: Never.self) { places.append(try #require(try other.place(.request))) }
        let late = try await connection(open, address)
        #expect(throws: Never.self, "nothing counts for the address any more") { places.append(try #require(try late.place(.request))) }
        places = []
        #expect(shares.exchanges.used == 0 && shares.busy.used == 0)
        #expect(throws: Never.self) { places = try (0..<75).map { _ in try #require(try hog.place(.request)) } }
    }

    /// A new connection waits for the answer about its client, however long that takes to find.
    @Test func aNewConnectionWaitsUntilItsClientIsKnown() async throws {
        let shares = ClientShares(exchanges: 100, connections: 1000)
        let gate = DispatchSemaphore(value: 0)
        let isKnown = Atomic(false)
        let open = OpenConnections(limit: 1000, shares: shares) { connections in
            gate.wait()
            return connections.map { _ in .process(7) }
        }
        let holder = shares.account(of: ann)
        let places = (0..<40).compactMap { _ in holder.begin(.stream) }
        let late = try await connection(open, .address(try #require(IPAddress("127.0.0.1"))))
        let loop = NIOAsyncTestingEventLoop()
        let naming = try #require(open.naming(late, on: loop))
        naming.whenComplete { _ in isKnown.store(true, ordering: .relaxed) }
        await loop.advanceTime(by: .milliseconds(1500))
        #expect(!isKnown.load(ordering: .relaxed) && places.count == 40)
        gate.signal()
        try await eventually("it is known") { late.account?.client == .process(7) }
        try await eventually("it begins") {
            await loop.run()
            return isKnown.load(ordering: .relaxed)
        }
        gate.signal()
    }

    /// A real connection of this process, and one of a child.
    @Test func theSystemNamesTheProcess() async throws {
        let server = try await RawServer.start { connection in _ = try await connection.readToEnd() }
        let own = try await RawConnection.open("127.0.0.1:\(server.port)")
        let child = Process()
        child.executableURL = URL(fileURLWithPath: "/bin/bash")
        child.arguments = ["-c", "exec 3<>/dev/tcp/127.0.0.1/\(server.port); read -u 3 -r line"]
        try child.run()
        defer { child.terminate() }
        try await eventually("both are connected") {
            let ends = SocketOwners.sockets().filter {
                !$0.isListening && $0.ends.remote.hasSuffix(":" + String(format: "%04X", server.port))
            }
            let clients = Set(SocketOwners.clients(of: ends.map { [$0.ends] }).compactMap { $0 })
            return clients == [.process(ProcessInfo.processInfo.processIdentifier), .process(child.processIdentifier)]
        }
        await own.close()
        await server.stop()
    }
}
