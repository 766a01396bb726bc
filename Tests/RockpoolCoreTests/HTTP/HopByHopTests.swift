// Fields removed at a hop, fields that must not be removed, and the fields added by intermediaries.
import HTTPTypes
import Testing

@testable import RockpoolCore

private func fields(_ lines: [(String, String)]) -> HTTPFields {
    HTTPFields(lines.compactMap { line in HTTPField.Name(line.0).map { HTTPField(name: $0, value: line.1) } })
}

@Suite struct HopByHopTests {
    @Test func strippingLeavesTheEndToEndFields() {
        let all = fields([
            ("Connection", "X-Foo, close"), ("connection", "x-bar"), ("X-Foo", "1"), ("X-Bar", "2"), ("X-Kept", "3"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"), ("Proxy-Authorization", "Basic x"), ("Proxy-Authenticate", "Basic"), ("TE", "trailers"),
            ("Trailer", "X"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AA"), ("Content-Length", "5"),
            ("Cookie", "a=1"), ("Cookie", "b=2"),
        ])
        #expect(HopByHop.stripped(all) == fields([("X-Kept", "3"), ("Cookie", "a=1"), ("Cookie", "b=2")]))
    }

    @Test func whatIsForEveryoneStaysThoughListed() {
        let response = fields([("Connection", "Cache-Control, Set-Cookie, X"), ("Cache-Control", "no-store"), ("X", "1")])
        #expect(HopByHop.stripped(response) == fields([("Cache-Control", "no-store")]))
    }

    @Test func anAnswerLeavesOurOwnFields() {
        let answer = fields([
            ("Connection", "X-Hop"), ("X-Hop", "1"), ("ROCKPOOL-Operation", "x"), ("Rockpool-State", "a"), ("rockpool-state", "b"),
            ("Rockpool-Cache-Control", "max-age=1"), ("X-Rockpool", "y"),
        ])
        #expect(HopByHop.stripped(answer: answer) == fields([("Rockpool-Cache-Control", "max-age=1"), ("X-Rockpool", "y")]))
    }

    @Test(arguments: [
        "close, Host", "Authorization", "cookie", "Cache-Control", "Range", "If-None-Match", "if-anything", "Idempotency-Key", "Via",
        "CDN-Loop",
        "Content-Length", "Content-Type", "Transfer-Encoding", "x,, , range", "Rockpool-Policy", "a b, range",
    ])
    func mayNotBeListed(value: String) {
        #expect(throws: Refusal.self) { try HopByHop.checkConnection(in: fields([("Connection", value)])) }
    }

    @Test(arguments: ["close", "keep-alive, X-Foo", "TE", "Upgrade, HTTP2-Settings", "", ",", "close\t", "a b", "Keep-Alive"])
    func mayBeListed(value: String) throws {
        try HopByHop.checkConnection(in: fields([("Connection", value)]))
    }

    @Test func viaIsAppended() {
        var head = fields([("Via", "1.0 fred")])
        Via.appended(to: &head, version: "1.1", name: "rockpool-1")
        Via.appendedLoopMark(to: &head, name: "rockpool-1")
        #expect(head[values: .via] == ["1.0 fred", "1.1 rockpool-1"])
        #expect(head[values: .cdnLoop] == ["rockpool-1"])
        #expect(Via.containsLoop(head, name: "rockpool-1"))
        #expect(!Via.containsLoop(head, name: "rockpool-2"))
    }

    @Test(arguments: [
        ("Via", "1.1 me", true), ("Via", "1.0 a, HTTP/1.1\tME (Squid)", true), ("Via", "1.1 a (x, 1.1 me)", false),
        ("Via", "1.1 me2", false),
        ("Via", "me", false), ("Via", "1.1 a (x \\) , 1.1 b), 1.1 me", true), ("Via", "1.1 a (((, 1.1 me", false), ("Via", "", false),
        ("Via", "1.1 a (b (c)) , 1.1 me", true), ("CDN-Loop", "a; v=1, me; x", true), ("CDN-Loop", "a; me", false),
        ("CDN-Loop", "Me", true),
    ])
    func loop(name: String, value: String, expected: Bool) {
        #expect(Via.containsLoop(fields([(name, value)]), name: "me") == expected)
    }

    @Test(arguments: [
        ("OPTIONS", "0", MaxForwards.answer, "0"), ("OPTIONS", "1", .forward, "0"),
        ("OPTIONS", "99999999999999999999", .forward, "9223372036854775806"),
        ("GET", "0", .forward, "0"), ("GET", "x", .forward, "x"),
    ])
    func maxForwards(method: String, value: String, expected: MaxForwards, left: String) throws {
        var head = fields([("Max-Forwards", value)])
        #expect(try MaxForwards.counted(method: method, in: &head) == expected)
        #expect(head[.maxForwards] == left)
    }

    @Test(arguments: [[("Max-Forwards", "-1")], [("Max-Forwards", "")], [("Max-Forwards", "1"), ("Max-Forwards", "1")]])
    func badMaxForwards(lines: [(String, String)]) {
        var head = fields(lines)
        #expect(throws: Refusal.self) { try MaxForwards.counted(method: "OPTIONS", in: &head) }
    }

    @Test func portsOfTunnelsAndRequests() throws {
        let notes = OriginAddress(scheme: .http, host: "127.0.0.1", port: 6379)
        let policy = PortPolicy(connectPorts: [443], declared: [notes])
        try policy.checkTunnel(host: "a", port: 443)
        try policy.checkTunnel(host: "127.0.0.1", port: 6379)
        #expect(throws: Refusal.self) { try policy.checkTunnel(host: "a", port: 6379) }
        #expect(throws: Refusal.self) { try policy.checkTunnel(host: "a", port: 80) }
        try policy.checkForwarding(to: notes)
        for port in [80, 443, 1024, 8080, 65535] { try policy.checkForwarding(to: OriginAddress(scheme: .http, host: "a", port: port)) }
        for port in [22, 25, 1023, 6379, 11211] {
            #expect(throws: Refusal.self) { try policy.checkForwarding(to: OriginAddress(scheme: .http, host: "a", port: port)) }
        }
    }
}
