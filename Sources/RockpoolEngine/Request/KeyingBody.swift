// Reads a request body that is part of the cache key, before anything is sent (QUERY, `cache: body`;
// docs/reference/configuration.md#routes).
import NIOCore
import RockpoolCore
import RockpoolStore

/// A whole request body and its digest in the key.
struct KeyingBody: Sendable {
    let bytes: ByteBuffer
    let digest: String
    /// What a client of git asks.
    var git: GitRequest?
    /// What a client of Git LFS asks.
    var largeFiles: LargeFileRequest?

    /// Recognises a write on a route where POST is a read (`cache: body`, `read: true`): a statement to a database, or a GraphQL operation that
    /// is no query.
    /// - Returns: nil for a read; true for a write that may be queued. A query named only by its hash may be a mutation, and is not.
    func queueableWrite(of request: RequestHead, on plan: RoutePlan) -> Bool? {
        guard plan.route?.isKeyedByBody == true else { return nil }
        let body = Array(bytes.readableBytesView)
        if QueueObstacle.of(request, body: body)?.isChange == true { return false }
        return GraphQLOperation.of(body: body).flatMap { $0 == .query ? nil : $0 == .mutation }
    }

    /// Returns nil if the body is not part of the key, or too long for it.
    ///
    /// Throws the failure that interrupted the body.
    static func read(_ exchange: Exchange, plan: RoutePlan) async throws(TransferFailure) -> KeyingBody? {
        let limit = BodyKey.maxBody.bytes
        let length = exchange.body == nil ? 0 : exchange.bodyLength ?? limit
        // A preflight depends on its origin, not on a body.
        let obstacle = BodyKey.obstacle(exchange.request.method, isDeclared: plan.route?.isKeyedByBody == true, length: length)
        guard obstacle == nil, !plan.isWrite, !exchange.request.isPreflight else { return nil }
        guard exchange.body != nil else { return KeyingBody(ByteBuffer(), for: exchange.request) }
        return try await exchange.collected(upTo: Int(clamping: limit)).map { KeyingBody($0, for: exchange.request) }
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
