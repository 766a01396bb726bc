// A read that a relay sends in place of the read pipeline: its response is passed on, stored, or validates a stored one
// (docs/architecture.md#relays).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// One such read. Where others may wait for its response it leads them: they wait for its end, and look into the store then.
package final class RelayedRead: FetchLead {
    private let reads: ReadPipeline
    private let context: RequestContext
    private let base: CacheKey
    /// Of the fetch that others may wait for.
    private let key: FetchKey?
    /// The epoch of the fetch table before it was known what is stored.
    private let epoch: UInt64
    let beganAt: Moment
    /// True if others may wait for the response.
    let leads: Bool
    /// The response that the upstream is asked about; nil if nothing is stored.
    let stored: CopyToValidate?
    /// Called if the store had no room for the response.
    private let refused: @Sendable () -> Void
    private let sight: ClientSight
    /// The moment when the client asked.
    private let asked: UInt64
    private let finalFields: FinalFields
    private let fetch = Mutex<CoalescedFetch?>(nil)

    /// Nil if the pipeline has to answer: something is stored that may answer without the upstream, or that is not in memory; or the URL is
    /// presigned, and the pipeline knows which signatures may read a copy.
    /// - Parameters:
    ///   - mayLead: false if no other request may have the response.
    ///   - mayValidate: false if the pipeline makes every reply from what is stored.
    init?(
        _ context: RequestContext, by reads: ReadPipeline, sight: ClientSight, finalFields: FinalFields, mayLead: Bool, mayValidate: Bool,
        refused: @escaping @Sendable () -> Void
    ) {
        guard context.presigned == nil else { return nil }
        base = context.fetchBase
        (epoch, beganAt) = (reads.inFlight.epoch(of: base), reads.updates.cache.moment())
        let keys = StoragePartition.readable(by: context.identity.partition).map { context.key(in: $0) }
        // Looked for after the epoch was read, so that what is stored since then is noticed by `begin`.
        if keys.contains(where: reads.responses.cache.mayHold) {
            guard mayValidate, let copy = CopyToValidate(under: keys, for: context, by: reads) else { return nil }
            stored = copy
        } else {
            stored = nil
        }
        (self.reads, self.context, self.refused, self.finalFields) = (reads, context, refused, finalFields)
        (self.sight, asked) = (sight, sight.moment())
        leads = mayLead && !reads.inFlight.isUncollapsible(at: base, now: beganAt.at)
        key = leads ? context.fetchKey(varyingBy: stored?.forwarding.varyNames ?? []) : nil
    }

    deinit { leave() }

    /// Registers the read where it leads. False if another one of the same key is under way: then the read pipeline answers.
    package func begin() -> Bool {
        guard let key else { return true }
        guard case .lead(let fetch) = reads.inFlight.join(at: key, since: epoch, mayFollow: false, now: beganAt) else { return false }
        self.fetch.withLock { $0 = fetch }
        return true
    }

    /// True if its client may change later what the response shows.
    package var showsState: Bool { context.plan.showsState }

    /// Ends the read, because its response is passed on and not stored, as the next ones will be.
    /// - Parameter head: with end-to-end fields only; nil if it shows no state.
    package func pass(_ head: ResponseHead?) {
        if leads { reads.inFlight.note(uncollapsible: base, now: reads.now()) }
        if let head { note(head, content: nil, includes: beganAt.tick) }
        leave()
    }

    /// Ends the read without a response: the requests that wait for it look again.
    package func leave() {
        guard let key, let fetch = takeFetch() else { return }
        reads.inFlight.leave(key: key)
        fetch.giveUp()
    }

    func takeLead(of key: FetchKey) -> CoalescedFetch? { key == self.key ? takeFetch() : nil }

    /// Starts to store a response. False if the read pipeline has to treat it.
    ///
    /// - Parameters:
    ///   - head: with end-to-end fields only.
    ///   - body: whole.
    package func keep(_ head: ResponseHead, body: ByteBuffer, on executor: any TaskExecutor) -> Bool {
        guard let key, let copy = reads.responses.copy(of: head, length: body.readableBytes, sentAt: beganAt, for: context),
            let fetch = takeFetch()
        else { return false }
        note(head, content: nil, includes: beganAt.tick)
        fetch.start(on: executor) { [self] in
            if await !reads.responses.keep(body, as: copy, by: context.plan) { refused() }
            reads.inFlight.leave(key: key)
            return .nothing
        }
        return true
    }

    /// Returns the reply from the stored response, which a 304 has validated; nil if the read pipeline has to treat the answer.
    /// - Parameter notModified: with end-to-end fields only.
    package func answer(to notModified: ResponseHead) -> Reply? {
        guard let stored,
            let copy = reads.updates.freshenedInMemory(by: notModified, sentAt: beganAt, for: context, forwarding: stored.forwarding)
        else { return nil }
        let entry = copy.entry
        reads.updates.cache.use(entry)
        let (now, trace) = (reads.now(), stored.trace(of: entry, for: context))
        var reply = Reply(
            head: entry.dated(entry.response.head, by: Freshness.of(entry.response, now: now)), body: .bytes(stored.body), trace: trace)
        copy.complete(&reply.head)
        let isItem = context.plan.showsItem && MediaType.isJSON(reply.head.fields)
        note(reply.head, content: isItem ? stored.body : nil, includes: trace.includes)
        finalFields.add(to: &reply, trace: trace, gateway: context.exchange.gateway, hidesTags: context.plan.upstream?.tags == .hide)
        if leads, case .validate = reads.lookup.reuse(of: [entry], for: context.request, rules: stored.forwarding.rules, now: now) {
            reads.inFlight.note(uncollapsible: base, now: now)
        }
        leave()
        return reply
    }

    private func note(_ head: ResponseHead, content: ByteBuffer?, includes: Tick?) {
        guard showsState,
            let shown = ShownState(
                head, content: content.map { Array($0.readableBytesView) }, includes: includes, source: .upstream, shownAt: reads.now())
        else { return }
        sight.note(shown, at: context.request.url, to: context.viewer, asked: asked)
    }

    private func takeFetch() -> CoalescedFetch? {
        fetch.withLock { fetch in
            defer { fetch = nil }
            return fetch
        }
    }
}

/// The one stored response of a read, which its upstream must validate, with its body in memory.
struct CopyToValidate: Sendable {
    let forwarding: Forwarding
    let body: ByteBuffer
    /// The reason of the decision.
    private let reason: String
    private let count: Int

    /// Nil if the pipeline decides otherwise, or needs the disk.
    init?(under keys: [CacheKey], for context: RequestContext, by reads: ReadPipeline) {
        let cache = reads.updates.cache
        let looked = keys.map { cache.lookupInMemory($0) }
        guard !looked.contains(where: { $0 == nil }), context.plan.strategy != .networkOnly else { return nil }
        let readable = reads.lookup.readable(looked.flatMap { $0 ?? [] }, by: context.identity)
        let found = reads.lookup.ownFirst(readable, identity: context.identity, plan: context.plan)
        let rules = reads.reuseContext(for: context, found: found)
        guard
            case .validate(let index, _, let conditionals, let reason) = reads.lookup.reuse(
                of: found, for: context.request, rules: rules, now: reads.now()),
            found[index].response.head.status == 200, found[index].response.part == nil, !found[index].response.isHeadOnly,
            let body = cache.bodyInMemory(of: found[index]),
            !GatewayReplies.changes(
                found[index].response.head, body.readableBytesUInt8Span, of: context.plan.upstream, for: context.exchange.gateway)
        else { return nil }
        var forwarding = Forwarding(found: found, rules: rules, reason: reason.forward, epoch: nil)
        (forwarding.selected, forwarding.conditionals) = (index, conditionals)
        (self.forwarding, self.body, self.reason, count) = (forwarding, body, reason.rawValue, found.count)
    }

    /// The record of the exchange after a 304.
    func trace(of entry: CacheEntry, for context: RequestContext) -> Trace {
        var trace = Trace(method: "GET", url: context.request.url, startedAt: context.trace.startedAt)
        trace.record(
            .routed(upstream: context.plan.upstream?.name, category: context.plan.category?.name, strategy: context.plan.strategy))
        trace.record(.looked(candidates: count))
        trace.record(.decided("validate (\(reason))"))
        trace.record(.fetched(status: 304))
        (trace.verdict, trace.identity) = (.revalidated, context.identity)
        trace.cacheStatus = CacheStatus(hit: false, fwd: forwarding.reason, fwdStatus: 304)
        trace.includes = entry.response.includesWritesUntil
        return trace
    }
}
