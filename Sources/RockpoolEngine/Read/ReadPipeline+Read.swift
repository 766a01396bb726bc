// Reads: reuses a stored response as the rules allow, otherwise forwards the request (RFC 9111 §4; docs/architecture.md#journeys).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Answers a read with the server's state, without queued writes.
    func readServerState(_ context: inout RequestContext) async -> Reply {
        // Another fetch may finish during lookup; then the store is read again. 10 lookups suffice for a few variants that finish together.
        var looks = 0
        while true {
            looks += 1
            let epoch = fills.epoch(of: context.fillKey().base)
            let found = ownFirst(await lookup(context), context.identity, context.plan)
            context.trace.record(.looked(candidates: found.count))
            let rules = reuseContext(context, found)
            let decision = reuse(found.map(\.response), for: context.request, rules, now: now())
            context.trace.record(.decided("\(decision.word) (\(decision.reason))"))
            if let reply = await answer(decision, found, rules, &context, epoch: looks < 10 ? epoch : nil) { return reply }
        }
    }

    /// Returns the reply for the decision; nil if the store must be read again.
    private func answer(
        _ decision: Reuse, _ found: [CacheEntry], _ rules: ReuseContext, _ context: inout RequestContext, epoch: UInt64?
    ) async -> Reply? {
        var question = Forwarding(found: found, rules: rules, forward: .uriMiss, epoch: epoch)
        switch decision {
        case .fresh(let index, let freshness):
            context.trace.verdict = .hit
            if let hit = await serve(found[index], freshness, &context) { return hit }
        case .stale(let index, let freshness, let reason):
            context.trace.verdict = .stale
            if let stale = await serveStale(found[index], freshness, reason, &context) { return stale }
        case .validate(let index, let freshness, let conditionals, let reason):
            question.selected = index
            question.freshness = freshness
            question.conditionals = conditionals
            question.forward = reason.forward
        case .complete(let index, let fields):
            question.selected = index
            question.conditionals = fields
            question.forward = .partial
            question.completes = true
        case .none(let reason): question.forward = reason.forward
        case .gatewayTimeout(let reason):
            context.trace.verdict = .failed
            context.trace.cacheStatus = CacheStatus(hit: false, fwd: reason.forward, detail: reason.rawValue)
            return Reply(Problem(.onlyIfCached, detail: "nothing stored can answer this request (\(reason.rawValue))"), context.trace)
        }
        if let whole = withoutConditions(question, context) { return await forward(question, unconditional: whole, for: &context) }
        return await forward(question, &context)
    }

    /// Returns every stored variant that the request may read: those of its own partition first, then the shared ones.
    func lookup(_ context: RequestContext) async -> [CacheEntry] {
        guard context.plan.strategy != .networkOnly else { return [] }
        return await lookup(StoragePartition.readable(by: context.identity.partition).map(context.key))
    }

    /// Under `offline-first`, filters `found` for a request with a key or token. Shared copies that are not marked shareable answered
    /// requests without a credential: they are dropped if the client's partition holds a whole copy, else marked for revalidation. While
    /// the upstream is unreachable they are served.
    ///
    /// RFC 9111 allows a copy to answer every request that matches its `Vary`, but an API that responds by credential may fail to declare
    /// it there. Cookies are excluded: browsers send them with every image.
    func ownFirst(_ found: [CacheEntry], _ identity: Identity, _ plan: RoutePlan) -> [CacheEntry] {
        guard plan.policy == .offlineFirst, identity.partition?.isEmpty == false, identity.secrets.contains(where: { $0.name != .cookie })
        else { return found }
        let isNobodys = { (entry: CacheEntry) in
            entry.key.partition == .shared && !Storability.isShareable(entry.response.directives)
        }
        let others = found.filter { !isNobodys($0) }
        if others.contains(where: { $0.key.partition != .shared && $0.response.part == nil }) { return others }
        return found.map { entry in
            guard isNobodys(entry) else { return entry }
            var doubted = entry
            doubted.response.isInvalidated = true
            return doubted
        }
    }

    func lookup(_ keys: [CacheKey]) async -> [CacheEntry] {
        do { return try await cache.lookup(keys) } catch {
            logger.failed("cache lookup failed", error)
            return []
        }
    }

    private func reuseContext(_ context: RequestContext, _ found: [CacheEntry]) -> ReuseContext {
        let category = context.plan.category ?? found.first.flatMap { active.category(named: $0.response.category) }
        return ReuseContext(
            policy: context.plan.policy, strategy: context.plan.strategy, offlineWindow: category?.offlineWindow ?? .forever,
            isReachable: context.isReachable && !mayBeAnothers(context), hasBody: context.exchange.body != nil,
            cachesByBody: context.bodyDigest != nil)
    }

}

/// A read that must be forwarded, with the stored variants and the reason why they cannot answer it.
struct Forwarding: Sendable {
    /// All entries under the key that the request may read.
    let found: [CacheEntry]
    let rules: ReuseContext
    /// The reason for forwarding.
    var forward: CacheStatus.Forward
    /// The epoch of the fetch table before lookup; nil if the store must not be read again.
    let epoch: UInt64?
    /// Index in `found` of the entry that is revalidated or completed.
    var selected: Int?
    var freshness: Freshness?
    /// Sent in place of the client's own conditions and range.
    var conditionals: HTTPFields = [:]
    /// True if the missing rest of the selected entry is requested; false for a revalidation.
    var completes = false

    init(found: [CacheEntry], rules: ReuseContext, forward: CacheStatus.Forward, epoch: UInt64?) {
        self.found = found
        self.rules = rules
        self.forward = forward
        self.epoch = epoch
    }

    var entry: CacheEntry? { selected.map { found[$0] } }

    /// The request fields by which the stored responses vary.
    var varyNames: [HTTPField.Name] { found.first?.response.validity.varyNames ?? [] }

    /// The same question for the whole, as if nothing were stored.
    var anew: Forwarding { Forwarding(found: [], rules: rules, forward: forward, epoch: nil) }

    /// Returns the request as sent upstream: the conditions of a revalidation, if there is one, replace the client's.
    func head(of request: RequestHead) -> RequestHead {
        guard selected != nil else { return request }
        var head = request.unconditional
        for field in conditionals { head.fields.append(field) }
        return head
    }
}
