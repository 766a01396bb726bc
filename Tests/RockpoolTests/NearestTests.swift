// The suggestion for a mistyped word.
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct NearestTests {
    @Test(arguments: [
        ("", "abc", 3), ("abc", "abc", 0), ("abc", "ABC", 0), ("abc", "acb", 1), ("abc", "abd", 1), ("abc", "ab", 1), ("ca", "abc", 3),
    ])
    func `Distances`(a: String, b: String, expected: Int) {
        #expect(Nearest.distance(from: a, to: b) == expected)
        #expect(Nearest.distance(from: b, to: a) == expected)
    }

    @Test func `The first of the closest, nothing of nothing`() {
        #expect(Nearest.to("cash", of: ["hash", "cache", "dash"]) == "hash")
        #expect(Nearest.to("cash", of: []) == nil)
    }

    @Test(arguments: [
        ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), ("Host.Example:1", "host.example", 1),
    ])
    func `Hosts and ports`(text: String, host: String, port: Int) {
        #expect(HostAndPort(text).map { [$0.host, "\($0.port)"] } == [host, "\(port)"])
    }

    @Test(arguments: ["", ":80", "a", "a:", "a:x", "a:-1", "a:999999", "[::1", "[a]:1", "::1:80", "a b:1", "user@a:1", "a:1/x"])
    func `What is no host and port`(text: String) {
        #expect(HostAndPort(text) == nil)
    }
}
