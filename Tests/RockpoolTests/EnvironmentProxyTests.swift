// The proxy that an environment names is told where an upstream cannot be reached.
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct EnvironmentProxyTests {
    @Test(
        arguments: [
            (["https_proxy": "http://proxy.example:3128"], "http://proxy.example:3128"),
            (["HTTPS_PROXY": "proxy.example:3128"], "http://proxy.example:3128"),
            (["ALL_PROXY": "socks5h://p.example"], "socks5h://p.example"),
            (["https_proxy": "http://ann:secret@proxy.example:3128/"], "http://proxy.example:3128/"),
            (["https_proxy": "", "HTTPS_PROXY": "http://b.example"], "http://b.example"), (["http_proxy": "http://proxy.example"], nil),
            (["https_proxy": "http://127.0.0.1:7625"], nil), (["https_proxy": "http://localhost:7625"], nil), (["https_proxy": "://"], nil),
            ([:], nil),
        ] as [([String: String], String?)])
    func itIsNamedWithoutItsCredential(_ environment: [String: String], _ url: String?) {
        #expect(EnvironmentProxy(for: OriginAddress(scheme: .https, host: "api.example.com"), in: environment)?.url == url)
    }
}
