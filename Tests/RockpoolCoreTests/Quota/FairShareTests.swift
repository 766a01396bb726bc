// The shares of clients in a limit, and the order of those who wait (docs/security-model.md#shares-of-clients).
import Testing

@testable import RockpoolCore

struct FairShareTests {
    /// Takes one after the other for clients 0..<count in turn until none may take more.
    private func fill(_ limit: Int, clients count: Int) -> [Int] {
        var held = [Int](repeating: 0, count: count)
        var hasTaken = true
        while hasTaken {
            hasTaken = false
            for client in held.indices where FairShare.admits(1, held: held[client], used: held.reduce(0, +), limit: limit) {
                held[client] += 1
                hasTaken = true
            }
        }
        return held
    }

    /// A single client gets three quarters, and one more is refused; a small limit is used.
    @Test(arguments: [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6), (100, 75), (1024, 768)])
    func oneClientGetsThreeQuarters(limit: Int, share: Int) {
        #expect(fill(limit, clients: 1) == [share])
    }

    @Test(arguments: [2, 3, 10, 50]) func clientsGetEqualSharesAndLeaveRoom(count: Int) {
        let held = fill(1024, clients: count)
        #expect((held.max() ?? 0) - (held.min() ?? 0) <= 1, "\(held)")
        #expect(held.reduce(0, +) < 1024)
    }

    /// Whatever the others have, a client that has nothing gets something.
    @Test(arguments: 1...40) func aNewcomerFindsRoom(others: Int) {
        let held = fill(1024, clients: others).reduce(0, +)
        #expect(FairShare.admits(1, held: 0, used: held, limit: 1024))
    }

    /// What is taken at once is not free any more.
    @Test(arguments: [(75, 0, true), (76, 0, false), (18, 76, true), (19, 76, false)])
    func threeQuartersOfWhatIsFreeAreTakenAtOnce(amount: Int, used: Int, isAdmitted: Bool) {
        #expect(FairShare.admits(amount, held: 0, used: used, limit: 100) == isAdmitted)
    }

    @Test(arguments: [(75, 75, false), (76, 76, true), (30, 90, false), (31, 90, true), (1, 100, true), (0, 100, false), (1, 200, true)])
    func aShareIsExceededByWhatOthersTakeToo(held: Int, used: Int, isExceeded: Bool) {
        #expect(FairShare.isExceeded(held: held, used: used, limit: 100) == isExceeded)
    }

    @Test(arguments: [(1, 1), (2, 2), (3, 3), (4, 3), (100, 75), (1024, 768)])
    func noKindTakesMoreThanThreeQuarters(limit: Int, most: Int) {
        #expect(FairShare.ofKind(limit: limit) == most)
        #expect(most == (0..<limit).first { !FairShare.admits(1, held: $0, used: $0, limit: limit) } ?? limit)
    }

    // MARK: silent tunnels

    private let ann = ClientID.process(1)
    private let bob = ClientID.process(2)
    private let cat = ClientID.process(3)

    @Test func theLongestSilentOfTheClientItselfGivesWayToItsOwn() {
        let tunnels = [(bob, 90), (ann, 5), (ann, 40), (ann, 0)].map { SilentTunnel(client: $0, silence: .seconds($1)) }
        #expect(SilentTunnel.toClose(among: tunnels, for: ann, isOwnShare: true) == 2)
        #expect(SilentTunnel.toClose(among: tunnels, for: cat, isOwnShare: true) == nil, "a share of its own is no reason to close others'")
    }

    @Test func whoHasMostGivesWayToOthers() {
        let tunnels = [(bob, 90), (ann, 5), (ann, 40), (ann, 0)].map { SilentTunnel(client: $0, silence: .seconds($1)) }
        #expect(SilentTunnel.toClose(among: tunnels, for: bob, isOwnShare: false) == 2)
        #expect(SilentTunnel.toClose(among: tunnels, for: cat, isOwnShare: false) == 2)
        #expect(SilentTunnel.toClose(among: tunnels, for: ann, isOwnShare: false) == 2, "its own, because it has most")
        #expect(SilentTunnel.toClose(among: [tunnels[0], tunnels[3]], for: ann, isOwnShare: false) == nil, "no more than it has itself")
    }

    @Test(arguments: [(999, nil), (1000, 0)] as [(Int64, Int?)]) func aTunnelInUseStays(milliseconds: Int64, index: Int?) {
        let tunnel = SilentTunnel(client: ann, silence: .milliseconds(milliseconds))
        #expect(SilentTunnel.toClose(among: [tunnel], for: ann, isOwnShare: true) == index)
        #expect(SilentTunnel.toClose(among: [], for: ann, isOwnShare: true) == nil)
    }
}

struct FairQueueTests {
    @Test func aClientWaitsAtItsShareAndAnotherBegins() {
        var queue = FairQueue<String, Int>(limit: 8)
        let begun = (0..<7).map { queue.enter($0, of: "ann") }
        #expect(begun == [true, true, true, true, true, true, false] && queue.waiting == 1)
        #expect(queue.enter(7, of: "bob") == true, "another client finds room")
        let next = queue.leave("ann").map(\.work)
        #expect(next == [6])
        #expect(queue.running == 7 && queue.waiting == 0)
    }

    @Test func whoHasFewestIsNextAndEqualsInTheirOrder() {
        var queue = FairQueue<String, Int>(limit: 4)
        let first = (0..<3).map { queue.enter($0, of: "ann") } + [queue.enter(3, of: "bob")]
        #expect(first == [true, true, true, true])
        let later = [(10, "ann"), (11, "ann"), (20, "bob"), (21, "bob"), (30, "cat")].map { queue.enter($0, of: $1) }
        #expect(later.allSatisfy { !$0 })
        let begun = (0..<3).flatMap { _ in queue.leave("ann").map(\.work) }
        #expect(begun == [30, 10, 11], "who has least, and of equals who has waited longest")
    }

    @Test func thePlacesAreNeverMoreThanTheLimitAndAllHaveTheirTurn() {
        var queue = FairQueue<Int, Int>(limit: 8)
        var running: [Int] = []
        for work in 0..<5 {
            for client in 0..<20 where queue.enter(client + 100 * work, of: client) { running.append(client + 100 * work) }
        }
        var done = 0
        while let work = running.popLast() {
            #expect(queue.running <= 8)
            done += 1
            running += queue.leave(work % 100).map(\.work)
        }
        #expect(done == 100 && queue.isEmpty)
    }

    @Test func whatIsWithdrawnDoesNotBegin() {
        var queue = FairQueue<String, Int>(limit: 1)
        let entered = [(0, "ann"), (1, "ann"), (2, "bob"), (3, "bob")].map { queue.enter($0, of: $1) }
        #expect(entered == [true, false, false, false])
        let withdrawn = [2, 2, 0].map { number in queue.withdraw(from: number == 0 ? "ann" : "bob") { $0 == number } }
        #expect(withdrawn == [true, false, false], "what has begun is not withdrawn")
        let all = queue.withdrawAll().map(\.work).sorted()
        #expect(all == [1, 3])
        let next = queue.leave("ann").map(\.work)
        #expect(next == [])
        #expect(queue.isEmpty)
    }
}

struct FairPlacesTests {
    @Test func clientsTakeTurnsAtAllPlacesToo() {
        var places = FairPlaces<String, String, Int>(limit: 8, hostLimit: 100)
        let ann = (0..<20).map { places.enter($0, at: "a", of: "ann") }
        #expect(ann.count { $0 } == 5, "of the six places of a host")
        let bob = places.enter(100, at: "a", of: "bob")
        #expect(bob, "another client finds room at the same host")
        let others = (200..<210).map { places.enter($0, at: "b", of: "cat") }
        #expect(others.count { $0 } == 2, "and at another, of what is left")
        let next = places.leave("a", of: "ann")
        #expect(next == [202], "who has the fewest is next")
    }

    @Test func placesAreNeverMoreThanTheirLimitsAndAllHaveTheirTurn() {
        for seed in UInt64(1)...200 {
            var random = SimulationRandom(seed: seed)
            let limit = Int.random(in: 1...9, using: &random)
            let hostLimit = Int.random(in: 1...9, using: &random)
            var places = FairPlaces<Int, Int, Int>(limit: limit, hostLimit: hostLimit)
            var running: [Int] = []
            var ended: Set<Int> = []
            func host(_ work: Int) -> Int { work % 3 }
            func client(_ work: Int) -> Int { work / 3 % 4 }
            for work in 0..<60 {
                if places.enter(work, at: host(work), of: client(work)) { running.append(work) }
                let one = Int.random(in: 0...work, using: &random)
                switch Int.random(in: 0..<6, using: &random) {
                case 0 where !running.isEmpty:
                    let done = running.remove(at: Int.random(in: 0..<running.count, using: &random))
                    ended.insert(done)
                    running += places.leave(host(done), of: client(done))
                case 1:
                    if let next = places.withdraw(from: host(one), of: client(one), where: { $0 == one }) {
                        #expect(!running.contains(one) && ended.insert(one).inserted)
                        running += next
                    }
                case 2 where work % 10 == 0: ended.formUnion(places.withdrawAll(from: one % 3))
                default: break
                }
                #expect(running.count <= limit, "seed \(seed)")
                #expect((0..<3).allSatisfy { one in running.count { host($0) == one } <= hostLimit }, "seed \(seed)")
            }
            while let done = running.popLast() {
                #expect(ended.insert(done).inserted)
                running += places.leave(host(done), of: client(done))
            }
            #expect(ended.count == 60 && places.isEmpty && places.used.isEmpty, "seed \(seed)")
        }
    }
}

struct SystemSocketTests {
    /// Lines as Linux 6.1 shows them.
    private let table = """
          sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
           0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21001 1 0000000000000000 100 0 0 10 0
           1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 21002 1 0000000000000000 20 4 30 10 -1
           2: broken
        """

    @Test func theTableIsRead() throws {
        let sockets = SystemSocket.all(in: Array(table.utf8))
        #expect(sockets.map(\.inode) == [21001, 21002] && sockets.map(\.user) == [0, 1000])
        #expect(sockets.map(\.isListening) == [true, false] && sockets.map(\.port) == [8080, 50000])
        let client = try #require(IPAddress("127.0.0.1"))
        let ends = SystemSocket.Ends.ofClient(client, port: 50000, at: client, port: 8080)
        #expect(ends.first == sockets[1].ends)
        #expect(SystemSocket.all(in: Array(table.utf8), of: Set(ends)).map(\.inode) == [21002])
    }

    /// The client of a listener for both families may have a socket of either.
    @Test(arguments: ["127.0.0.1", "::ffff:127.0.0.1"]) func anIPv4ClientIsFoundInBothTables(address: String) throws {
        let client = try #require(IPAddress(address))
        let ends = SystemSocket.Ends.ofClient(client, port: 1, at: client, port: 65535)
        #expect(ends.map(\.local) == ["0100007F:0001", "0000000000000000FFFF00000100007F:0001"])
        #expect(ends.map(\.remote) == ["0100007F:FFFF", "0000000000000000FFFF00000100007F:FFFF"])
    }

    @Test func anIPv6ClientHasOneSpelling() throws {
        let client = try #require(IPAddress("::1"))
        let ends = SystemSocket.Ends.ofClient(client, port: 80, at: client, port: 443)
        #expect(ends.map(\.local) == ["00000000000000000000000001000000:0050"])
    }
}
