// Reads the body of a request whose responses are stored by it, before anything is sent (QUERY, `cache: body`;
// docs/reference/configuration.md#routes).
import NIOCore
import RockpoolCore
import RockpoolStore

/// A whole request body and what of the key stands for it.
struct KeyingBody: Sendable {
    let bytes: ByteBuffer
    let digest: String

    /// What a GraphQL request asks for on a route that takes a POST for a read (`cache: body`), where that is anything but a query.
    func graphQLWrite(_ plan: RoutePlan) -> GraphQLOperation? {
        guard plan.route?.cache == .body else { return nil }
        return GraphQLOperation.of(body: Array(bytes.readableBytesView)).flatMap { $0 == .query ? nil : $0 }
    }

    /// Nil where responses are not stored by the body, or it is too long for that, or of unannounced length.
    ///
    /// Throws what broke the body off.
    static func read(_ exchange: Exchange, _ plan: RoutePlan) async throws(TransferFailure) -> KeyingBody? {
        let length = exchange.body == nil ? 0 : exchange.bodyLength ?? .max
        let rule = plan.route?.cache ?? .standard
        guard BodyKey.obstacle(exchange.request.method, rule: rule, length: length) == nil else { return nil }
        let bytes = try await exchange.body?.collect(upTo: Int(clamping: length)).bytes ?? ByteBuffer()
        let preamble = BodyKey.preamble(exchange.request.fields, bodyLength: bytes.readableBytes)
        return KeyingBody(bytes: bytes, digest: CacheStore.digest(of: preamble + bytes.readableBytesView))
    }
}
