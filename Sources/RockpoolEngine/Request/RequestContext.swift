// One exchange with its routing decision and its cache keys (docs/architecture.md#journeys, docs/caching.md#cache-key *Keys*).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// The state that the steps of the pipeline share.
struct RequestContext: Sendable {
    var exchange: Exchange
    var plan: RoutePlan
    var identity: Identity
    /// Determined once per exchange, because a trial of an offline upstream is granted to one request, not to each step.
    let permission: Reachability.Permission
    let wishes: WritePreferences
    /// The equivalence of the path's queries; nil if each query is distinct.
    let searchVariance: SearchVariance?
    /// The request as the client sent it, with its local ids.
    let original: RequestHead
    /// True if the request names a local id without a server id. Then it is never sent.
    let namesUnmapped: Bool
    /// Origin and target in the form that keys use.
    private var keyPlace: CacheKey.Place
    /// What the query of the target signs; nil if the client says by other means who it is.
    private(set) var presigned: PresignedURL?
    /// The body and its digest if the body is part of the key.
    private var keyingBody: KeyingBody?
    /// True for a background request, for which no client waits.
    private(set) var isBehind = false
    /// The record of the request, to which every step adds.
    var trace: Trace

    init(
        exchange: Exchange, trace: Trace, plan: RoutePlan, identity: Identity, permission: Reachability.Permission,
        wishes: WritePreferences,
        searchVariance: SearchVariance? = nil, keyingBody: KeyingBody? = nil, original: RequestHead? = nil, namesUnmapped: Bool = false
    ) {
        self.exchange = exchange
        self.trace = trace
        self.plan = plan
        self.identity = identity
        self.permission = permission
        self.wishes = wishes
        self.searchVariance = searchVariance
        self.original = original ?? exchange.request
        self.namesUnmapped = namesUnmapped
        self.keyingBody = keyingBody
        presigned = exchange.request.fields.contains(.authorization) ? nil : PresignedURL(target: exchange.request.target)
        let asked = presigned?.target ?? exchange.request.target
        let target = searchVariance?.normalized(target: asked) ?? asked
        keyPlace = CacheKey.Place(origin: exchange.request.origin, target: target)
    }

    var request: RequestHead { exchange.request }

    var isReachable: Bool {
        if case .no = permission { false } else { true }
    }

    /// When a queued write must have been sent: at the time its client names, or when its signature is no longer accepted.
    var expiry: Timestamp? {
        let signed = identity.signature.isEmpty || exchange.signer != nil ? nil : SignedRequest(original)?.expiresAt
        return [wishes.expiresAt, signed, presigned?.expiresAt].compactMap { $0 }.min()
    }

    var bodyDigest: String? { keyingBody?.digest }

    /// What the key has beside method, origin and target. The copies of presigned requests are apart: without its signature their target is one
    /// that anybody may ask for.
    var keyBody: String { bodyDigest ?? (presigned == nil ? "" : "presigned") }

    /// What a client of git asks.
    var gitRequest: GitRequest? { keyingBody?.git }
    /// What a client of Git LFS asks.
    var largeFileRequest: LargeFileRequest? { keyingBody?.largeFiles }

    /// The body, if it is part of the key.
    var keyedBody: ByteBuffer? { keyingBody?.bytes }

    var outboundBody: OutboundRequest.Body {
        if let keyingBody { return keyingBody.bytes.readableBytes == 0 ? .none : .bytes(keyingBody.bytes) }
        return exchange.body.map { .stream($0, length: exchange.bodyLength) } ?? .none
    }

    /// True if another gateway of the site may answer the request, as it is sent: a read that needs no more than a stored response.
    func mayShare(_ head: RequestHead) -> Bool {
        guard !plan.isWrite, !exchange.isFromGateway, head.method == .get || head.method == .head, exchange.body == nil, keyingBody == nil,
            plan.strategy == .cacheFirst || plan.strategy == .staleWhileRevalidate, plan.route?.store != .never
        else { return false }
        // A signature, a `Host` of the client, a part and a stream are between the client and the origin.
        return exchange.signer == nil && identity.signature.isEmpty && plan.upstream?.preserveHost != true && head.fields[.range] == nil
            && head.fields[.accept]?.contains("text/event-stream") != true && !CacheControl(request: head.fields).noStore
    }

    /// The body of the response as it is streamed to the client.
    func bodyOnTheWay(_ answer: OriginReply) -> ReplyBody {
        request.method == .head ? .none(length: answer.length) : .stream(answer.body, length: answer.length)
    }

    // MARK: - Keys

    func key(in partition: StoragePartition) -> CacheKey {
        CacheKey(method: request.method.rawValue, at: keyPlace, identity: partition.name, body: keyBody)
    }

    /// Returns the key shared by requests that one fetch may serve.
    /// - Parameter names: The request fields by which the responses are known to vary.
    func fetchKey(varyingBy names: [HTTPField.Name] = []) -> FetchKey {
        let names = names + Vary.unkeyedNames(of: request).filter { !names.contains($0) }
        let variant = names.isEmpty ? "" : "\n" + Vary.variantKey(Vary.selectingFields(names, of: request))
        return FetchKey(base: fetchBase, variant: variant)
    }

    /// The key of the request's own responses.
    var fetchBase: CacheKey { key(in: .own(identity.partition)) }

    // MARK: - Variants

    /// The same request at another path of the same origin, or with another `Depth`.
    func at(_ target: String, depth: String? = nil) -> RequestContext {
        var context = self
        context.presigned = nil
        context.exchange.request.target = target
        if let depth { context.exchange.request.fields[.depth] = depth }
        context.keyPlace = CacheKey.Place(origin: request.origin, target: target)
        if let keyingBody { context.keyingBody = KeyingBody(keyingBody.bytes, for: context.request) }
        return context
    }

    /// A read of the whole file at another path of the same origin, answered only from what is stored.
    func readFromStore(of target: String) -> RequestContext {
        var context = at(target)
        (context.keyingBody, context.exchange.body) = (nil, nil)
        context.exchange.request = context.request.unconditional
        context.exchange.request.method = .get
        for name in [HTTPField.Name.contentType, .contentLength, .contentEncoding, .depth] { context.exchange.request.fields[name] = nil }
        context.plan.strategy = .cacheOnly
        return context
    }

    /// The same read as Rockpool's own background request: for the whole, unconditional, and not answered from the store.
    func behind(at moment: Timestamp) -> RequestContext {
        var context = self
        context.trace = Trace(method: "GET", url: request.url, startedAt: moment)
        context.exchange.request = request.unconditional
        if request.method == .head { context.exchange.request.method = .get }
        context.exchange.interim = { _ in }
        for name in [HTTPField.Name.cacheControl, .pragma] { context.exchange.request.fields[name] = nil }
        context.plan.strategy = .networkFirst
        context.isBehind = true
        return context
    }
}

extension RequestHead {
    /// The head without the fields that make the response depend on the client's own copy.
    var unconditional: RequestHead {
        var head = unvalidated
        for name in [HTTPField.Name.ifRange, .range] { head.fields[name] = nil }
        return head
    }

    /// The head without the conditions that 304 answers.
    var unvalidated: RequestHead {
        var head = self
        for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince] { head.fields[name] = nil }
        return head
    }
}

/// The key shared by requests that one fetch may serve (docs/caching.md#coalesced-fetches).
struct FetchKey: Hashable, Sendable {
    /// The cache key in the request's own partition.
    let base: CacheKey
    /// The values of the fields that select among several responses, if known (`Vary.variantKey`).
    var variant = ""
    /// True for the first request for a range: others wait until its response names the representation.
    var opensRanges = false
}

// MARK: - A body in the key

/// A whole request body and its digest in the key, read before anything is sent (QUERY, `cache: body`;
/// docs/reference/configuration.md#routes).
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
