// The proxy that an environment names: Rockpool does not take it by itself (docs/guide/https.md#parent-proxies).
import Foundation
import RockpoolCore

/// A proxy of the environment by which other programs of this machine reach an origin.
struct EnvironmentProxy: Hashable {
    /// Its URL without a credential.
    let url: String

    /// Nil without one, and for a proxy on this machine, which is most likely Rockpool itself.
    init?(for origin: OriginAddress, in environment: [String: String]) {
        let names = origin.scheme == .https ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        guard let value = (names + ["all_proxy", "ALL_PROXY"]).lazy.compactMap({ environment[$0] }).first(where: { !$0.isEmpty }),
            var parts = URLComponents(string: value.contains("://") ? value : "http://\(value)"), let host = parts.host,
            !OriginAddress.isLoopback(host)
        else { return nil }
        (parts.user, parts.password) = (nil, nil)
        guard let url = parts.string else { return nil }
        self.url = url
    }

    /// What to do where an upstream cannot be reached.
    var advice: String { "the environment names the proxy \(url): if it is the way out, give it to the upstream: via: { url: \"\(url)\" }" }
}
