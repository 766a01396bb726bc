// The heads of an upstream's response in the form in which libcurl delivers them (RFC 9110 §15.2, RFC 9112 §6.3).
import RockpoolCore
import Testing

@testable import RockpoolNetwork

struct ResponseHeadsTests {
    /// Returns the result of each line of `text`: `100`, `final 200 5`, `502`; lines without a result are left out.
    private func steps(_ text: String, method: String = "GET", allowsUpgrade: Bool = false) -> [String] {
        var heads = ResponseHeads(method: method, allowsUpgrade: allowsUpgrade)
        var steps: [String] = []
        for line in text.utf8.split(separator: 10, omittingEmptySubsequences: false).dropLast() {
            do {
                switch try heads.receive(Array(line) + [10]) {
                case .more: break
                case .interim(let head): steps.append("\(head.status)")
                case .final(let head, let length, _): steps.append("final \(head.status) \(length.map(String.init) ?? "-")")
                }
            } catch {
                steps.append("\(error.status)")
                break
            }
        }
        return steps
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", ["final 200 5"]), ("HTTP/1.1 200 OK\r\n\r\n", "GET", ["final 200 -"]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", ["final 200 -"]),
        ("HTTP/1.1 204 No\r\n\r\n", "GET", ["final 204 0"]),
        ("HTTP/1.1 304 NM\r\nContent-Length: 9\r\n\r\n", "GET", ["final 304 0"]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", ["final 200 5"]),
        ("HTTP/1.0 200\r\n\r\n", "GET", ["final 200 -"]), ("HTTP/2 200\r\nContent-Length: 0\r\n\r\n", "GET", ["final 200 0"]),
    ])
    func finalHeads(text: String, method: String, expected: [String]) { #expect(steps(text, method: method) == expected) }

    @Test func interimHeadsComeBeforeTheFinalOne() {
        let text = "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
        #expect(steps(text) == ["100", "103", "final 200 1"])
    }

    @Test func trailersAfterTheFinalHeadAreDropped() {
        #expect(steps("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nX-Trailer: 1\r\nnonsense\r\n\r\n") == ["final 200 1"])
    }

    @Test func trailersAreBounded() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        let line = "X-T: " + String(repeating: "t", count: 1017) + "\r\n"
        let most = Int(ResponseHeads.headLimit.bytes) / 1024
        #expect(steps(head + String(repeating: line, count: most)) == ["final 200 -"])
        #expect(steps(head + String(repeating: line, count: most + 1)) == ["final 200 -", "502"])
    }

    @Test(arguments: [(true, "final 101 0"), (false, "502")])
    func switchingIsForThoseWhoAsked(allowed: Bool, expected: String) {
        #expect(steps("HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", allowsUpgrade: allowed) == [expected])
    }

    @Test(arguments: [
        "HTTP/1.1 99 X\r\n\r\n", "HTTP/1.1 600 X\r\n\r\n", "HTTP/1.1 2000 X\r\n\r\n", "HTTP/3.1 200 X\r\n\r\n", "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\u{0}c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 407 P\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n",
    ])
    func whatAnUpstreamMayNotSendIs502(text: String) { #expect(steps(text).last == "502") }

    @Test(arguments: [(16, "final 200 0"), (17, "502")])
    func interimHeadsAreCounted(count: Int, last: String) {
        let text = String(repeating: "HTTP/1.1 102 P\r\n\r\n", count: count) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        #expect(steps(text).contains(last) && steps(text).contains("final 200 0") == (count == 16))
    }
}
