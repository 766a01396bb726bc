// Reads a request body that is part of the cache key, before anything is sent (QUERY, `cache: body`;
// docs/reference/configuration.md#routes).
import NIOCore
import RockpoolCore
import RockpoolStore

/// A whole request body and its digest in the key.
struct KeyingBody: Sendable {
    let bytes: ByteBuffer
    let digest: String

    /// The operation of a GraphQL request on a route where POST is a read (`cache: body`), unless the operation is a query; nil otherwise.
    func graphQLWrite(on plan: RoutePlan) -> GraphQLOperation? {
        guard plan.route?.cache == .body else { return nil }
        return GraphQLOperation.of(body: Array(bytes.readableBytesView)).flatMap { $0 == .query ? nil : $0 }
    }

    /// Returns nil if the body is not part of the key, too long for it, or of unannounced length.
    ///
    /// Throws the failure that interrupted the body.
    static func read(_ exchange: Exchange, plan: RoutePlan) async throws(TransferFailure) -> KeyingBody? {
        let length = exchange.body == nil ? 0 : exchange.bodyLength ?? .max
        let rule = plan.route?.cache ?? .standard
        // A preflight depends on its origin, not on a body.
        guard BodyKey.obstacle(exchange.request.method, rule: rule, length: length) == nil, !exchange.request.isPreflight else {
            return nil
        }
        let bytes = try await exchange.body?.collect(upTo: Int(clamping: length)).bytes ?? ByteBuffer()
        return KeyingBody(bytes, for: exchange.request)
    }

    /// A body with the digest of a request that is cached by it.
    init(_ bytes: ByteBuffer, for request: RequestHead) {
        let preamble = BodyKey.preamble(request.fields, bodyLength: bytes.readableBytes)
        self.init(bytes: bytes, digest: CacheStore.digest(of: preamble + bytes.readableBytesView))
    }

    /// The body of a GraphQL query, keyed by what it asks instead of by its bytes.
    init(_ bytes: ByteBuffer, of query: GraphQLRequest) {
        self.bytes = bytes
        digest = CacheStore.digest(of: query.keyText { CacheStore.digest(of: $0) })
    }

    init(bytes: ByteBuffer, digest: String) { (self.bytes, self.digest) = (bytes, digest) }
}
