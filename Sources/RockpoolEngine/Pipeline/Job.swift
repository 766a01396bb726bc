// One exchange with what routing said of it, and the keys it is found by (docs/architecture.md#journeys, docs/caching.md#cache-key *Keys*).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// What the steps of the pipeline pass on.
struct Job: Sendable {
    var exchange: Exchange
    var plan: RoutePlan
    var identity: Identity
    /// Asked once an exchange: a trial of an upstream thought away is one request's, not one step's.
    let permission: Reachability.Permission
    let wishes: WriteWishes
    /// Which queries of this path mean the same; nil where each stands for itself.
    let searchVariance: SearchVariance?
    /// As the client sent it, local ids and all.
    let original: RequestHead
    /// Whether it names a local id that has become nothing yet: then it never leaves.
    let namesUnmapped: Bool
    /// The target as keys have it.
    private let keyTarget: String
    /// The body and its digest, where responses are stored by it.
    private let keyingBody: KeyingBody?
    /// Whether no client waits for it.
    private(set) var isBehind = false

    init(
        exchange: Exchange, plan: RoutePlan, identity: Identity, permission: Reachability.Permission, wishes: WriteWishes,
        searchVariance: SearchVariance? = nil, keyingBody: KeyingBody? = nil, original: RequestHead? = nil, namesUnmapped: Bool = false
    ) {
        self.exchange = exchange
        self.plan = plan
        self.identity = identity
        self.permission = permission
        self.wishes = wishes
        self.searchVariance = searchVariance
        self.original = original ?? exchange.request
        self.namesUnmapped = namesUnmapped
        self.keyingBody = keyingBody
        keyTarget = searchVariance?.normalized(target: exchange.request.target) ?? exchange.request.target
    }

    var request: RequestHead { exchange.request }

    var isReachable: Bool {
        if case .no = permission { false } else { true }
    }

    var bodyDigest: String? { keyingBody?.digest }

    var outboundBody: OutboundRequest.Body {
        if let keyingBody { return keyingBody.bytes.readableBytes == 0 ? .none : .bytes(keyingBody.bytes) }
        return exchange.body.map { .stream($0, length: exchange.bodyLength) } ?? .none
    }

    /// The answer's body as it streams to the client.
    func bodyOnTheWay(_ answer: OriginReply) -> ReplyBody {
        request.method == .head ? .none(length: answer.length) : .stream(answer.body, length: answer.length)
    }

    // MARK: keys

    func key(in partition: StoragePartition) -> CacheKey {
        CacheKey(
            method: request.method.rawValue, origin: request.origin, target: keyTarget, identity: partition.name, body: bodyDigest ?? "")
    }

    /// What requests have in common that one fetch may serve.
    /// - Parameter names: what the answers are known to vary by.
    func fillKey(varyingBy names: [HTTPField.Name] = []) -> FillKey {
        let variant = names.isEmpty ? "" : "\n" + Vary.variantKey(Vary.selectingFields(names, of: request))
        return FillKey(base: key(in: .own(identity.partition)), variant: variant)
    }

    // MARK: variants

    /// The same read as we would ask it ourselves: whole, unconditional, and not from the store.
    var behind: Job {
        var job = self
        job.exchange.request = request.unconditional
        if request.method == .head { job.exchange.request.method = .get }
        job.exchange.interim = { _ in }
        for name in [HTTPField.Name.cacheControl, .pragma] { job.exchange.request.fields[name] = nil }
        job.plan.strategy = .networkFirst
        job.isBehind = true
        return job
    }
}

extension RequestHead {
    /// Without the fields that make the answer depend on what the client has.
    var unconditional: RequestHead {
        var head = self
        for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince, .ifRange, .range] { head.fields[name] = nil }
        return head
    }
}
