// Reads: looked up, reused as the rules allow, else forwarded (RFC 9111 §4; docs/architecture.md#journeys).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension Engine {
    /// Answers a read: with the client's own writes in it, where some are about it.
    func read(_ job: Job, _ trace: inout Trace) async -> Reply {
        var reply: Reply
        if let view = view(of: job) {
            reply = await readFolded(view, job, &trace)
        } else if job.namesUnmapped {
            reply = self.reply(Problem(.notFound, detail: "\(job.original.path) names what its upstream has none of yet"), trace)
        } else {
            reply = await readServerState(job, &trace)
        }
        // Asked for by a local id: this is what it is called now (RFC 9110 §8.7).
        if job.original.target != job.request.target, reply.head.status == 200 { reply.head.fields[.contentLocation] = job.request.url }
        return reply
    }

    /// Answers a read as the server had it.
    func readServerState(_ job: Job, _ trace: inout Trace) async -> Reply {
        // What others bring while the store is looked at makes it worth another look: once for each of a few variants that end together.
        var looks = 0
        while true {
            looks += 1
            let epoch = fills.epoch(of: job.fillKey().base)
            let found = ownFirst(await lookup(job), job.identity, job.plan)
            trace.record(.looked(candidates: found.count))
            let context = reuseContext(job, found)
            let decision = reuse(found.map(\.response), for: job.request, context, now: now())
            trace.record(.decided("\(decision.word) (\(decision.reason))"))
            if let reply = await answer(decision, found, context, job, epoch: looks < 10 ? epoch : nil, &trace) { return reply }
        }
    }

    /// The reply the decision leads to; nil when the store has to be looked at again.
    private func answer(
        _ decision: Reuse, _ found: [CacheEntry], _ context: ReuseContext, _ job: Job, epoch: UInt64?, _ trace: inout Trace
    ) async -> Reply? {
        var question = Question(found: found, context: context, forward: .uriMiss, epoch: epoch)
        switch decision {
        case .fresh(let index, let freshness):
            trace.verdict = .hit
            if let hit = await serve(found[index], freshness, job, &trace) { return hit }
        case .stale(let index, let freshness, let reason):
            trace.verdict = .stale
            if let stale = await serveStale(found[index], freshness, reason, job, &trace) { return stale }
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
            trace.verdict = .failed
            trace.cacheStatus = CacheStatus(hit: false, fwd: reason.forward, detail: reason.rawValue)
            return reply(Problem(.onlyIfCached, detail: "nothing stored can answer this request (\(reason.rawValue))"), trace)
        }
        if let whole = withoutConditions(question, job) { return await forward(question, unconditional: whole, for: job, &trace) }
        return await forward(question, job, &trace)
    }

    /// Every stored variant the request may see: its own partition first, then the shared one.
    func lookup(_ job: Job) async -> [CacheEntry] {
        guard job.plan.strategy != .networkOnly else { return [] }
        return await lookup(StoragePartition.readable(by: job.identity.partition).map(job.key))
    }

    /// `found` for a client with a key or a token of a declared upstream: its own copies, or those that answered a client without one, to
    /// be
    /// asked about. While the upstream is away they stand in.
    ///
    /// RFC 9111 lets a copy answer whoever matches its `Vary`; an API that answers otherwise by credential may have forgotten to say so
    /// there.
    /// Cookies are no such credential: browsers send them for every picture.
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

    private func reuseContext(_ job: Job, _ found: [CacheEntry]) -> ReuseContext {
        let category = job.plan.category ?? found.first.flatMap { self.category(named: $0.response.category) }
        return ReuseContext(
            policy: job.plan.policy, strategy: job.plan.strategy, offlineWindow: category?.offlineWindow ?? .forever,
            isReachable: job.isReachable && !mayBeAnothers(job), hasBody: job.exchange.body != nil, cachesByBody: job.bodyDigest != nil)
    }

    func category(named name: String) -> Category? { configuration.categories.first { $0.name == name } }
}

/// A read that has to be forwarded: what is stored, and why that does not do.
struct Question: Sendable {
    /// Everything stored under the key that the request may see.
    let found: [CacheEntry]
    let context: ReuseContext
    /// Why it goes forward.
    var forward: CacheStatus.Forward
    /// What the table of fills said before the store was looked at; nil when it is not to be looked at again.
    let epoch: UInt64?
    /// Of `found`, what is asked about or being completed.
    var selected: Int?
    var freshness: Freshness?
    /// Sent in place of the client's own conditions and range.
    var conditionals: HTTPFields = [:]
    /// Whether the rest of what is stored is asked for, not whether it still holds.
    var completes = false

    init(found: [CacheEntry], context: ReuseContext, forward: CacheStatus.Forward, epoch: UInt64?) {
        self.found = found
        self.context = context
        self.forward = forward
        self.epoch = epoch
    }

    var entry: CacheEntry? { selected.map { found[$0] } }

    /// What the stored responses vary by.
    var varyNames: [HTTPField.Name] { found.first?.response.validity.varyNames ?? [] }

    /// The same for the whole, as if nothing were stored.
    var anew: Question { Question(found: [], context: context, forward: forward, epoch: nil) }

    /// The request as it is sent: our conditions, where there are any, in place of the client's.
    func head(of request: RequestHead) -> RequestHead {
        guard selected != nil else { return request }
        var head = request.unconditional
        for field in conditionals { head.fields.append(field) }
        return head
    }
}
