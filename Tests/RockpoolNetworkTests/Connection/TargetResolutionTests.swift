// The origin of a request, resolved on a proxy and on a gateway (RFC 9112 §3.2, docs/reference/admin-api.md#conflicts).
import HTTPTypes
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

struct TargetResolutionTests {
    private static let origin = OriginAddress(scheme: .https, host: "api.example.com")

    private static let gateway = GatewayListener(listen: "127.0.0.1:7625", upstreams: [Upstream(name: "api", origin: origin)])

    private func resolution(_ role: ListenerRole) -> TargetResolution {
        let ownPorts = OwnPorts()
        ownPorts.insert(7625)
        return TargetResolution(
            role: role, ports: PortPolicy(connectPorts: [443], declared: [Self.origin]), listener: "127.0.0.1:7625", ownPorts: ownPorts)
    }

    /// Returns the result of resolving a target: the origin and path, a tunnel, or the status of the refusal.
    private func outcome(_ role: ListenerRole, _ method: String, _ target: String, host: String) -> String {
        do throws(Refusal) {
            let parsed = try RequestTarget.parse(target, method: method)
            switch try resolution(role).destination(of: parsed, fields: [.hostField: host]) {
            case .origin(let origin, let path): return "\(origin.url) \(path)"
            case .tunnel(let host, let port): return "tunnel \(host):\(port)"
            }
        } catch { return "\(error.status)" }
    }

    @Test(arguments: [
        ("GET", "http://api.test/a?b", "api.test", "http://api.test /a?b"), ("GET", "http://api.test", "other.test", "http://api.test /"),
        ("GET", "http://api.test:8080/a", "api.test:8080", "http://api.test:8080 /a"),
        ("OPTIONS", "http://api.test", "api.test", "http://api.test *"),
        ("GET", "http://api.test:22/", "api.test:22", "403"), ("GET", "http://api.test:6379/", "api.test:6379", "403"),
        ("CONNECT", "api.test:443", "api.test:443", "tunnel api.test:443"), ("GET", "/a", "api.test", "400"),
        ("OPTIONS", "*", "api.test", "400"),
        ("GET", "http://127.0.0.1:7625/", "127.0.0.1:7625", "403"), ("GET", "http://localhost:7625/", "localhost:7625", "403"),
        ("GET", "http://[::1]:7625/", "[::1]:7625", "403"), ("CONNECT", "localhost:7625", "localhost:7625", "403"),
        (
            "GET", "http://localhost:7625/.well-known/rockpool/operations/1", "localhost:7625",
            "http://localhost:7625 /.well-known/rockpool/operations/1"
        ),
        ("GET", "/.well-known/rockpool/operations/1", "127.0.0.1:7625", "http://127.0.0.1:7625 /.well-known/rockpool/operations/1"),
        ("GET", "http://localhost:7626/", "localhost:7626", "http://localhost:7626 /"),
    ])
    func throughTheProxy(method: String, target: String, host: String, expected: String) {
        #expect(outcome(.proxy, method, target, host: host) == expected)
    }

    @Test(arguments: [
        ("GET", "/a?b", "127.0.0.1:7625", "https://api.example.com /a?b"), ("GET", "/a", "localhost:7625", "https://api.example.com /a"),
        ("GET", "/a", "api.example.com", "https://api.example.com /a"), ("GET", "/a", "api.example.com:443", "https://api.example.com /a"),
        ("GET", "/a", "api.example.com:444", "421"), ("GET", "/a", "evil.test", "421"),
        ("OPTIONS", "*", "localhost", "https://api.example.com *"),
        ("GET", "https://api.example.com/a", "whatever.test", "https://api.example.com /a"),
        ("GET", "http://evil.test/a", "localhost", "421"),
        ("CONNECT", "api.example.com:443", "api.example.com:443", "405"),
        ("GET", "/a/../b?x=%2F%7e", "localhost", "https://api.example.com /a/../b?x=%2F%7e"),
    ])
    func throughAGateway(method: String, target: String, host: String, expected: String) {
        #expect(outcome(.gateway(GatewayDoor(Self.gateway)), method, target, host: host) == expected)
    }

    @Test(arguments: [
        ("localhost", true), ("a.localhost", true), ("127.9.9.9", true), ("::1", true), ("localhost.test", false), ("10.0.0.1", false),
    ])
    func loopbackNames(host: String, isLoopback: Bool) { #expect(OriginAddress.isLoopback(host) == isLoopback) }

    @Test(arguments: [
        ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), ("host:65535", "host", 65535),
    ])
    func listenAddresses(text: String, host: String, port: Int) throws {
        let split = try #require(HostAndPort(text))
        #expect(split.host == host && split.port == port)
    }

    @Test(arguments: ["host", "host:", ":80", "host:65536", "host:-1", "host:x"])
    func whatIsNoListenAddress(text: String) { #expect(HostAndPort(text) == nil) }
}
