// The bytes sent to a parent proxy, and the interpretation of its responses (RFC 9110 §9.3.6, RFC 1928).
import RockpoolCore
import Testing

@Suite struct ParentProxyTests {
    @Test(arguments: [
        ("http://proxy:3128", "http proxy:3128"), ("socks5h://10.0.0.1:1080", "socks5h 10.0.0.1:1080"),
        ("https://[::1]:443", "https [::1]:443"),
        ("ftp://proxy:1", "-"), ("http://proxy", "-"), ("proxy:3128", "-"), ("http://proxy:0", "-"),
    ])
    func anAddressIsRead(text: String, expected: String) {
        #expect((ParentProxy(text).map { "\($0.kind.rawValue) \($0.address)" } ?? "-") == expected)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 Connection established\r\n\r\n", ParentProxyTalk.Action.established(early: [])),
        ("HTTP/1.0 200 OK\r\nVia: x\r\n\r\nearly", .established(early: Array("early".utf8))),
        ("HTTP/1.1 407 Authentication\r\n\r\n", .failed("the parent proxy answered 407")),
        ("SSH-2.0-x\r\n\r\n", .failed("the parent proxy's answer is not HTTP")),
        ("HTTP/1.1 200 OK\r\n", .more),
        (String(repeating: "x", count: ParentProxyTalk.headLimit), .more),
        (String(repeating: "x", count: ParentProxyTalk.headLimit + 1), .failed("the parent proxy's answer is too long")),
    ])
    func anHTTPProxyAnswers(answer: String, action: ParentProxyTalk.Action) {
        var talk = ParentProxyTalk(.http, host: "::1", port: 443)
        #expect(String(decoding: talk.begin(), as: UTF8.self) == "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n")
        #expect(talk.receive(answer.utf8) == action)
    }

    @Test(arguments: [
        ("ab.test", "5 1 0 3 7 97 98 46 116 101 115 116 1 187"), ("10.1.2.3", "5 1 0 1 10 1 2 3 1 187"),
        ("::1", "5 1 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 187"),
    ])
    func aSOCKSProxyIsTold(host: String, expected: String) {
        let words = expected.split(separator: " ").compactMap { UInt8($0) }
        var talk = ParentProxyTalk(.socks5h, host: host, port: 443)
        #expect(talk.begin() == [5, 1, 0])
        #expect(talk.receive([5]) == .more)
        #expect(talk.receive([0]) == .send(words))
        #expect(talk.receive([5, 0, 0, 1, 127, 0, 0]) == .more)
        #expect(talk.receive([1, 0, 80, 22, 3]) == .established(early: [22, 3]))
    }

    @Test(arguments: [
        ("5 255", "the parent proxy takes no client without a password"), ("4 0", "the parent proxy takes no client without a password"),
        ("5 0 5 5 0 1 0", "the parent proxy refused (SOCKS 5)"), ("5 0 5 0 0 9 0", "the parent proxy's answer is not SOCKS 5"),
    ])
    func aSOCKSProxyRefuses(words: String, why: String) {
        let answer = words.split(separator: " ").compactMap { UInt8($0) }
        var talk = ParentProxyTalk(.socks5, host: "10.1.2.3", port: 443)
        _ = talk.begin()
        _ = talk.receive(answer.prefix(2))
        #expect((answer.count == 2 ? talk.receive([]) : talk.receive(answer.dropFirst(2))) == .failed(why))
    }

    @Test func aNameInSOCKSAnswersIsSkipped() {
        var talk = ParentProxyTalk(.socks5h, host: "a", port: 1)
        _ = talk.begin()
        _ = talk.receive([5, 0])
        #expect(talk.receive([5, 0, 0, 3, 2, 97, 98, 0, 80]) == .established(early: []))
    }
}
