// The gateways of a site share what their caches hold (docs/fleet.md#caches).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(4)), .serialized) struct SiteCacheTests {
    @Test func aSiteFetchesOnceAndLivesWithoutTheOwner() async throws {
        let world = try await SiteWorld.start(3)
        for number in 0..<6 {
            for index in 0..<3 {
                let reply = try await world.send("/cold/\(number)", to: index)
                #expect(reply.status == 200 && reply.text == "/cold/\(number) version 1", "\(reply.heads)")
            }
            #expect(world.arrivals("/cold/\(number)") == 1, "one fetch for the site")
        }
        let kept = try await world.send(world.path(ownedBy: 1, "kept"), to: 0)
        #expect(kept["cache-status"] == "rockpool; fwd=uri-miss; stored, rockpool; fwd=uri-miss; stored", "\(kept.heads)")
        #expect(world.heads.allSatisfy { !$0.lowercased().contains("rockpool-peer") }, "\(world.heads)")
        // The owner dies: reads go on, at first by one attempt that fails.
        try await world.gateways[1].kill()
        for name in ["dead", "gone"] {
            let path = world.path(ownedBy: 1, name)
            for index in [0, 2] {
                let reply = try await world.send(path, to: index)
                #expect(reply.status == 200 && reply.text == "\(path) version 1", "\(reply.heads)")
            }
        }
        let down = try await world.gateways[0].get("/metrics").text
        #expect(down.contains("rockpool_fleet_parent_up{parent=\"\(world.addresses[1])\"} 0\n"), "\(down)")
        #expect(down.contains("rockpool_fleet_parent_up{parent=\"\(world.addresses[2])\"} 1\n"))
        #expect(!down.contains("rockpool_fleet_parent_answers_total 0\n") && !down.contains("rockpool_fleet_database_up"))
        // It returns, and is used again after a probe.
        try await world.gateways[1].start()
        try await eventually("it is up again", within: .seconds(60)) { world.gateways[0].errors.contains("another gateway answers again") }
        try await Task.sleep(for: .seconds(4))
        let path = world.path(ownedBy: 1, "back")
        #expect(try await world.send(path, to: 0).status == 200)
        let owner = try await world.send(path, to: 1)
        #expect(owner["cache-status"]?.contains("hit") == true && world.arrivals(path) == 1, "\(owner.heads)")
        try await world.stop()
    }

    @Test func writesAreSeenAndGoToTheOrigin() async throws {
        let world = try await SiteWorld.start(2)
        let path = world.path(ownedBy: 1, "notes")
        for index in [1, 0] { #expect(try await world.send(path, to: index).text == "\(path) version 1") }
        #expect(world.arrivals(path) == 1)
        // The owner's copy is fresh, but from before the write of the other.
        #expect(try await world.send(path, method: "PUT", to: 0, body: "x").status == 204)
        #expect(try await world.send(path, to: 0).text == "\(path) version 2")
        #expect(world.arrivals(path, method: "PUT") == 1)
        let put = world.heads.filter { $0.hasPrefix("PUT") }
        #expect(put.allSatisfy { $0.ranges(of: "1.1 rockpool-").count == 1 }, "no gateway was between: \(put)")
        // What the owner has queued is its own: the other gets, and keeps, the state of the origin.
        let other = world.path(ownedBy: 1, "queued")
        #expect(try await world.send(other, to: 1).text == "\(other) version 1")
        try await #expect(world.gateways[1].change("PUT", "/v1/network", ["mode": "offline"]).status < 300)
        #expect(try await world.send(other, method: "PUT", to: 1, fields: ["Content-Type: text/plain"], body: "mine").status == 202)
        let reply = try await world.send(other, to: 0)
        #expect(reply.text == "\(other) version 1" && reply["rockpool-state"] == nil, "\(reply.heads) \(reply.text)")
        #expect(world.arrivals(other) == 1, "the owner has answered with its copy: \(reply.heads)")
        try await world.stop()
    }

    /// Concurrent fetches at all gateways are one fetch, once no gateway has written for as long as a fetch may take.
    @Test func aCrowdIsJoinedByTheOwner() async throws {
        let world = try await SiteWorld.start(3, upstream: ["timeouts": ["connect": "1s", "first_byte": "3s"]])
        let (old, path) = (world.path(ownedBy: 1, "old"), world.path(ownedBy: 1, "slow"))
        #expect(try await world.send(old, to: 1).text == "\(old) version 1")
        #expect(try await world.send(old, method: "PUT", to: 0, body: "x").status == 204)
        try await Task.sleep(for: .seconds(7))
        let replies = try await withThrowingTaskGroup(of: Curl.self) { group in
            for number in 0..<9 { group.addTask { try await world.send(path, to: number % 3) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replies.allSatisfy { $0.status == 200 && $0.text == "\(path) version 1" }, "\(replies.map(\.status))")
        #expect(world.arrivals(path) == 1, "\(world.arrivals(path))")
        // The owner's copy is fresh, and older than the write of the other gateway.
        #expect(try await world.send(old, to: 0).text == "\(old) version 2")
        #expect(try await world.send(old, to: 1).text == "\(old) version 2", "the owner has looked at the origin for it")
        try await world.stop()
    }

    /// Wrong configurations: each gateway takes itself for the next one. A request makes one hop at most.
    @Test func aWrongListMakesNoLoop() async throws {
        let world = try await SiteWorld.start(3) { ($0 + 1) % 3 }
        for number in 0..<9 {
            let reply = try await world.send("/loop/\(number)", to: number % 3)
            #expect(reply.status == 200 && reply.text == "/loop/\(number) version 1", "\(reply.heads)")
            #expect((1...2).contains(world.arrivals("/loop/\(number)")))
        }
        // A client that claims to be a gateway gets an answer, and the origin does not learn of it.
        let claimed = try await world.send("/claimed", to: 0, fields: ["Rockpool-Peer: 1"])
        #expect(claimed.status == 200 && world.arrivals("/claimed") == 1)
        #expect(world.heads.allSatisfy { !$0.lowercased().contains("rockpool-peer") })
        try await world.stop()
    }

    /// A gateway that accepts and is silent, and a server that is none: both are left out, and no failed probe brings them back.
    @Test(arguments: [true, false]) func whatIsNoGatewayIsLeftOut(isSilent: Bool) async throws {
        let page = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 4\r\n\r\npage"
        let stranger = try await RawServer.start { connection in
            while true {
                _ = try await connection.read(through: "\r\n\r\n", within: .seconds(120))
                if isSilent { try await Task.sleep(for: .seconds(120)) }
                try await connection.send(page)
            }
        }
        let address = "http://127.0.0.1:\(stranger.port)"
        let world = try await SiteWorld.start(1, others: [address], upstream: ["timeouts": ["first_byte": "1s"]])
        let paths = ["a", "b", "c"].map { world.path(ownedBy: 1, $0, among: world.addresses + [address]) }
        let first = try await world.send(paths[0], to: 0)
        #expect(first.status == 200 && first.text == "\(paths[0]) version 1", "\(first.heads) \(first.text)")
        // Several probes fail meanwhile.
        try await Task.sleep(for: .seconds(8))
        for path in paths.dropFirst() {
            let start = ContinuousClock.now
            #expect(try await world.send(path, to: 0).text == "\(path) version 1")
            #expect(ContinuousClock.now - start < .seconds(1), "it is not asked again")
        }
        #expect(!world.gateways[0].errors.contains("answers again"), "\(world.gateways[0].errors)")
        try await world.stop()
        await stranger.stop()
    }
}
