// A gateway stands in for its origin: requests name the origin wherever they named the gateway (docs/reference/configuration.md#upstreams).
import HTTPTypes
import RockpoolCore

extension TargetResolution {
    /// The upstream of a gateway; nil for another listener.
    private var upstream: Upstream? {
        if case .gateway(let upstream) = role { upstream } else { nil }
    }

    /// Replaces the gateway's name in the fields of a request, or keeps the client's `Host` where the upstream asks for it.
    /// - Parameter host: The `Host` field that the client sent.
    func represent(_ request: inout RequestHead, sentTo host: String?) {
        guard let upstream, let host else { return }
        if upstream.preserveHost {
            request.fields[.hostField] = host
        } else {
            GatewayFields.rewrite(&request.fields, host: host, origin: upstream.origin)
        }
    }

    /// The fields about the client at this address, if the upstream asks for them.
    func forwarded(from address: String?, host: String?) -> HTTPFields {
        guard let upstream, upstream.forwarded else { return [:] }
        return GatewayFields.forwarded(for: address, host: host ?? listener, scheme: "http")
    }
}
