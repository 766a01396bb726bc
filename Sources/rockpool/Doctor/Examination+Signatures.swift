// Checks that gateways keep the signatures of their clients' requests valid (docs/guide/programs.md#s3-aws-boto3-rclone).
import RockpoolCore

extension Examination {
    /// Upstreams whose gateway sends another `Host` than the one that clients sign.
    func signatures() async -> [Finding] {
        struct Network: Decodable {
            struct Upstream: Decodable {
                var name: String
                var signatureBrokenAt: String?
            }
            var upstreams: [Upstream]
        }
        let network = try? await client.send(.get("/v1/network"), timeout: .seconds(5)).decoded(as: Network.self)
        let seen = Dictionary(
            (network?.upstreams ?? []).compactMap { upstream in upstream.signatureBrokenAt.map { (upstream.name, $0) } }
        ) { first, _ in first }
        return configuration.upstreams.compactMap { upstream in
            guard upstream.gateway != nil, !upstream.preserveHost, upstream.sign == nil else { return nil }
            let reason: String
            if let time = seen[upstream.name] {
                reason = "a signed request came to its gateway (\(ForPeople.time(time)))"
            } else if upstream.routes.contains(where: { $0.kind == .s3 }) {
                reason = "clients of its routes with kind: s3 sign their requests"
            } else {
                return nil
            }
            return .warn(
                "signatures of \(upstream.name)",
                detail: "\(reason), and the gateway sends another Host than the signature covers: the upstream refuses it",
                advice: "set sign: { sigv4: … } or preserve_host: true, or use the forward proxy")
        }
    }
}
