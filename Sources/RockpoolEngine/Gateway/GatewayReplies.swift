// Keeps the clients of a gateway: replies name the gateway's address in place of the origin's (docs/guide/clients.md#gateways).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// Translates between the clients of a gateway and the pipeline, which knows the origin only.
struct GatewayReplies: Sendable {
    let cache: CacheStore
    let active: ActiveConfiguration

    /// Prepares a request for `rewrite_bodies`: URLs of the gateway in its JSON become the origin's.
    func receive(_ exchange: inout Exchange) async {
        guard let gateway = exchange.gateway, rewritesBodies(gateway) else { return }
        for name in [HTTPField.Name.range, .ifRange, .acceptEncoding] { exchange.request.fields[name] = nil }
        guard let body = exchange.body, MediaType.isJSON(exchange.request.fields), !exchange.request.fields.contains(.contentEncoding),
            exchange.bodyLength ?? 0 <= GatewayAddress.bodyLimit
        else { return }
        let (bytes, rest) = await body.beginning(upTo: GatewayAddress.bodyLimit)
        if let rest {
            exchange.body = BodyPipe(bytes, then: rest)
        } else {
            let whole = gateway.inward(json: Array(bytes.readableBytesView)).map { ByteBuffer(bytes: $0) } ?? bytes
            exchange.body = BodyPipe(whole: whole)
            exchange.bodyLength = Int64(whole.readableBytes)
        }
    }

    /// Translates the fields of a reply, and its JSON where the configuration says so.
    func complete(_ reply: inout Reply, to exchange: Exchange) async {
        guard let gateway = exchange.gateway else { return }
        reply.head.fields = gateway.translated(reply.head.fields)
        guard rewritesBodies(gateway), (200...299).contains(reply.head.status), reply.head.status != 206,
            MediaType.isJSON(reply.head.fields), !reply.head.fields.contains(.contentEncoding)
        else { return }
        // The length of the translated body is unknown.
        if case .none = reply.body { reply.body = .none(length: nil) }
        guard let bytes = await reply.body.collect(upTo: GatewayAddress.bodyLimit, from: cache),
            let translated = gateway.outward(json: Array(bytes.readableBytesView))
        else { return }
        reply.body = .bytes(ByteBuffer(bytes: translated))
        for name in HTTPField.Name.digests { reply.head.fields[name] = nil }
    }

    private func rewritesBodies(_ gateway: GatewayAddress) -> Bool {
        active.routes.upstream(for: gateway.origin)?.gatewaySettings?.rewriteBodies.contains(.jsonURLs) == true
    }
}
