// The gateways of a site: whose key it is, which are up, how old an answer may be, and which answers count (docs/fleet.md#caches).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ParentRingTests {
    private static let nodes = ["http://shop-1:7625", "http://shop-2:7625", "http://shop-3:7625"]
    private static let keys = (0..<3000).map { "http://api.example\n/notes/\($0)" }
    private static let start = Timestamp(milliseconds: 1_800_000_000_000)
    private static let origin = OriginAddress(scheme: .http, host: "api.example")

    @Test func everyNodeFindsTheSameOwner() {
        let ring = ParentRing(nodes: Self.nodes, own: Self.nodes[0]), other = ParentRing(nodes: Self.nodes.reversed(), own: Self.nodes[2])
        for key in Self.keys { #expect(ring.order(for: key) == other.order(for: key)) }
        let owned = Dictionary(grouping: Self.keys) { ring.order(for: $0)[0] }.mapValues(\.count)
        #expect(owned.count == 3 && owned.values.allSatisfy { (850...1150).contains($0) }, "\(owned)")
    }

    @Test func aNodeThatLeavesMovesItsOwnKeysOnly() {
        let whole = ParentRing(nodes: Self.nodes, own: nil), rest = ParentRing(nodes: Array(Self.nodes.dropLast()), own: nil)
        for key in Self.keys { #expect(rest.order(for: key) == whole.order(for: key).filter { $0 != Self.nodes[2] }) }
    }

    @Test func onlyAProbeBringsAGatewayBack() {
        var health = ParentHealth()
        let node = Self.nodes[1]
        func due(_ now: Timestamp) -> [String] { health.takeDue(among: Self.nodes, now: now) }
        func fail(_ now: Timestamp) -> Bool { health.fail(node, now: now) }
        func probed(_ isAnswered: Bool, _ now: Timestamp) -> Bool { health.probed(node, isAnswered: isAnswered, now: now) }
        #expect(health.isUp(node) && due(Self.start).isEmpty)
        #expect(fail(Self.start))
        #expect(!fail(Self.start), "told once")
        #expect(due(Self.start).isEmpty)
        var now = Self.start
        for wait: Int64 in [1, 2, 4, 8, 16, 30, 30] {
            now = now + .seconds(wait)
            #expect(due(now - .milliseconds(1)).isEmpty, "after \(wait) s")
            #expect(due(now) == [node])
            #expect(due(now + .hours(1)).isEmpty, "one probe at a time")
            #expect(!probed(false, now) && !health.isUp(node))
        }
        #expect(due(now - .days(1)) == [node], "a clock that was set back")
        #expect(probed(true, now) && health.isUp(node))
        #expect(!probed(true, now))
        #expect(fail(now) && health.takeDue(among: [], now: now).isEmpty)
        #expect(health.isUp(node), "one that is configured no more is forgotten")
    }

    @Test func anAnswerIsNotOlderThanTheLastWrite() {
        var writes = OwnWriteTimes(startedAt: Self.start)
        #expect(writes.greatestAge(of: Self.origin, now: Self.start + .seconds(90)) == 89, "writes before the start are not known")
        writes.note(Self.origin, at: Self.start + .seconds(80))
        #expect(writes.greatestAge(of: Self.origin, now: Self.start + .seconds(90)) == 9)
        #expect(writes.greatestAge(of: Self.origin, now: Self.start + .seconds(80)) == 0)
        #expect(writes.greatestAge(of: Self.origin, now: Self.start) == 0, "a clock that was set back")
        for number in 0..<1000 { writes.note(OriginAddress(scheme: .http, host: "h\(number)"), at: Self.start + .seconds(100)) }
        #expect(writes.greatestAge(of: Self.origin, now: Self.start + .seconds(200)) == 119, "an origin that is listed no more")
    }

    @Test(
        arguments: [
            ("rockpool; hit; ttl=5", nil, 0, ParentAnswer.usable), ("rockpool; fwd=uri-miss; stored", nil, nil, .usable),
            ("cdn; hit, rockpool; hit", nil, nil, .foreign), ("rockpool; hit; ttl=5", "rockpool; error=dns_error", nil, .unusable),
            ("rockpool; hit; ttl=5", "cdn; error=dns_error", nil, .usable), ("rockpool; hit; ttl=-5", nil, nil, .unusable),
            ("rockpool; detail=generated", nil, nil, .unusable), ("rockpool; hit", nil, 10, .usable), ("rockpool; hit", nil, 11, .unusable),
            ("rockpools; hit", nil, nil, .foreign), (nil, nil, nil, .foreign),
        ] as [(String?, String?, Int?, ParentAnswer)])
    func anAnswerIsJudged(status: String?, proxy: String?, age: Int?, verdict: ParentAnswer) {
        var fields = HTTPFields()
        if let status { fields.append(HTTPField(name: .cacheStatus, value: status)) }
        if let proxy { fields.append(HTTPField(name: .proxyStatus, value: proxy)) }
        if let age { fields[.age] = "\(age)" }
        #expect(ParentAnswer.judge(ResponseHead(status: 200, fields: fields), greatestAge: 10) == verdict)
    }

    @Test func aPageInPlaceOfAGatewayIsNoProbe() {
        let ours = HTTPField(name: .cacheStatus, value: "rockpool; detail=generated")
        #expect(ParentAnswer.isAlive(ResponseHead(status: 200, fields: HTTPFields([ours]))))
        #expect(!ParentAnswer.isAlive(ResponseHead(status: 200, fields: [:])))
        #expect(!ParentAnswer.isAlive(ResponseHead(status: 502, fields: HTTPFields([ours]))))
    }
}
