// The four forms of a request target, and invalid targets.
import Testing

@testable import RockpoolCore

@Suite struct RequestTargetTests {
    @Test(arguments: [
        ("http://example.com/g", "http://example.com", "/g"),
        ("HTTP://EXAMPLE.com:80/g", "http://example.com", "/g"),
        ("https://example.com:8443/a?b=c", "https://example.com:8443", "/a?b=c"),
        ("http://example.com?x=1", "http://example.com", "/?x=1"),
        ("http://example.com", "http://example.com", "/"),
        ("http://example.com:/g", "http://example.com", "/g"),
        ("http://[0:0::1]:81/g", "http://[::1]:81", "/g"),
        ("http://127.0.0.1:9480/a/../g", "http://127.0.0.1:9480", "/a/../g"),
        ("http://example.com/a%00b%0d%0a?u=http://x/@y", "http://example.com", "/a%00b%0d%0a?u=http://x/@y"),
        ("http://my_host.local./?filter[a]=1", "http://my_host.local", "/?filter[a]=1"),
        ("http://EXAMPLE.com.:80/g", "http://example.com", "/g"),
        ("http://127.0.0.1./", "http://127.0.0.1", "/"),
    ])
    func absolute(target: String, origin: String, path: String) throws {
        guard case .absolute(let address, let pathAndQuery) = try RequestTarget.parse(target, method: "GET") else {
            Issue.record("the target is not in absolute form: \(target)")
            return
        }
        #expect(address.url == origin)
        #expect(pathAndQuery == path)
    }

    @Test(arguments: [
        "", "g", "*", "http:///g", "http:/g", "http:g", "://x/", "ftp://127.0.0.1/x", "file:///etc/passwd", "http://user:pw@example.com/g",
        "http://@example.com/", "http://example.com/g#f", "/g#", "http://127.0.0.1:0/g", "http://127.0.0.1:65536/",
        "http://127.0.0.1:4294967376/g",
        "http://a:+80/", "http://a:8a/", "http://example.com\\@evil.test/g", "/a b", "/\"", "/<", "/a|b", "/{x}", "/^", "/`", "/é",
        "/\u{7F}",
        "http://[::1/", "http://[fe80::1%25eth0]/", "http://[127.0.0.1]/", "http://[::1]x/", "http://a..b/", "http://.a/", "http://a,b/",
        "http://a../", "http://./", "http://../", "http://.:80/",
        "http://a%62/", "http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://0177.0.0.1/", "http://1.2.3.4.5/",
        "http://a.0x1/",
    ])
    func refused(target: String) {
        #expect(throws: Refusal.self) { try RequestTarget.parse(target, method: "GET") }
    }

    @Test func asteriskIsForOptions() throws {
        #expect(try RequestTarget.parse("*", method: "OPTIONS") == .asterisk)
        #expect(try RequestTarget.parse("/*", method: "OPTIONS") == .origin("/*"))
        let whole = OriginAddress(scheme: .http, host: "a")
        #expect(try RequestTarget.parse("http://a", method: "OPTIONS") == .absolute(whole, pathAndQuery: "*"))
        #expect(try RequestTarget.parse("http://a?q", method: "OPTIONS") == .absolute(whole, pathAndQuery: "/?q"))
    }

    @Test(arguments: [
        ("example.com:443", "example.com", 443), ("example.com.:443", "example.com", 443), ("127.0.0.1:65535", "127.0.0.1", 65535),
        ("[FD00:0::254]:80", "fd00::254", 80),
    ])
    func tunnel(target: String, host: String, port: Int) throws {
        #expect(try RequestTarget.parse(target, method: "CONNECT") == .authority(host: host, port: port))
    }

    @Test(arguments: [
        "", "*", "/x", "example.com", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:+443", "127.0.0.1:443/x", "u:p@127.0.0.1:443", "h:0",
        "127.0.0.1 :443", "example.com..:443", ".:443",
        "[::1", "::1:443", "http://example.com:443", "0xA9FEA9FE:80", "127.1:443", ":443", "h:443#",
    ])
    func noTunnel(target: String) {
        #expect(throws: Refusal.self) { try RequestTarget.parse(target, method: "CONNECT") }
    }

    @Test func authorityLimits() throws {
        let label = String(repeating: "a", count: 63)
        #expect(try Authority.parse("\(label):1"[...]) == Authority(host: label, port: 1))
        #expect(throws: Refusal.self) { try Authority.parse("\(label)a"[...]) }
        #expect(try Authority.parse("a:00080"[...]).port == 80)
        #expect(throws: Refusal.self) { try Authority.parse("a:000080"[...]) }
        #expect(try Authority.parse(String(repeating: "a.", count: 127)[...]).host.count == 253)
        #expect(throws: Refusal.self) { try Authority.parse(String(repeating: "a.", count: 128)[...]) }
    }
}
