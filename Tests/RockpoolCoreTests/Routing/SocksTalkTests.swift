// The server's side of a SOCKS 5 handshake.
import RockpoolCore
import Testing

@Suite struct SocksTalkTests {
    private static let request: [UInt8] = [5, 1, 0, 3, 9] + Array("Pool.Test".utf8) + [0, 80]

    @Test func aNameIsTheTarget() {
        var talk = SocksTalk(needsPassword: false)
        #expect(talk.receive([5, 2, 2, 0]) == .send([5, 0]))
        #expect(talk.receive(Self.request + [71]) == .connect(host: "pool.test", port: 80, early: [71]))
    }

    /// Every split of the bytes has the same result.
    @Test func bytesMayArriveOneByOne() {
        var talk = SocksTalk(needsPassword: false)
        var seen: [SocksTalk.Action] = []
        for byte in [5, 1, 0] + Self.request {
            let action = talk.receive([byte])
            if action != .more { seen.append(action) }
        }
        #expect(seen == [.send([5, 0]), .connect(host: "pool.test", port: 80, early: [])])
    }

    @Test(
        arguments: [
            ([1, 10, 0, 0, 1], "10.0.0.1"), ([4] + [UInt8](repeating: 0, count: 15) + [1], "::1"), ([3, 3] + Array("::1".utf8), "::1"),
            ([3, 8] + Array("10.0.0.1".utf8), "10.0.0.1"),
        ] as [([UInt8], String)])
    func addresses(form: [UInt8], host: String) {
        var talk = SocksTalk(needsPassword: false)
        _ = talk.receive([5, 1, 0])
        #expect(talk.receive([5, 1, 0] + form + [1, 187]) == .connect(host: host, port: 443, early: []))
    }

    @Test func whatIsNotAnsweredEnds() {
        let after = { (bytes: [UInt8]) -> SocksTalk.Action in
            var talk = SocksTalk(needsPassword: false)
            _ = talk.receive([5, 1, 0])
            return talk.receive(bytes)
        }
        #expect(after([5, 2, 0, 1, 1, 1, 1, 1, 0, 80]) == .end(SocksTalk.Reply.commandNotSupported.bytes))
        #expect(after([5, 1, 0, 9, 1, 1, 1, 1, 0, 80]) == .end(SocksTalk.Reply.addressNotSupported.bytes))
        #expect(after([5, 1, 0, 3, 3, 97, 47, 98, 0, 80]) == .end(SocksTalk.Reply.addressNotSupported.bytes))
        #expect(after([5, 1, 0, 1, 1, 1, 1, 1, 0, 0]) == .end(SocksTalk.Reply.addressNotSupported.bytes))
        var four = SocksTalk(needsPassword: false)
        #expect(four.receive([4, 1, 0, 80]) == .end([]))
        var http = SocksTalk(needsPassword: false)
        #expect(http.receive(Array("GET / HTTP/1.1\r\n".utf8)) == .end([]))
    }

    @Test func bytesDuringTheCheckAreKept() {
        var talk = SocksTalk(needsPassword: true)
        _ = talk.receive([5, 1, 2])
        #expect(talk.receive([1, 1, 97, 1, 98]) == .verify(user: "a", password: "b"))
        talk.keep(Self.request + [71])
        #expect(talk.verified(true) == .send([1, 0]))
        #expect(talk.proceed() == .connect(host: "pool.test", port: 80, early: [71]))
    }

    @Test func aPasswordIsVerifiedFirst() {
        let credentials: [UInt8] = [1, 3] + Array("ann".utf8) + [2] + Array("pw".utf8)
        var talk = SocksTalk(needsPassword: true)
        #expect(talk.receive([5, 2, 0, 2]) == .send([5, 2]))
        #expect(talk.receive(credentials + Self.request) == .verify(user: "ann", password: "pw"))
        #expect(talk.verified(true) == .send([1, 0]))
        #expect(talk.proceed() == .connect(host: "pool.test", port: 80, early: []))
        var wrong = SocksTalk(needsPassword: true)
        _ = wrong.receive([5, 1, 2])
        _ = wrong.receive(credentials)
        #expect(wrong.verified(false) == .end([1, 1]))
        var without = SocksTalk(needsPassword: true)
        #expect(without.receive([5, 1, 0]) == .end([5, 0xFF]))
    }
}
