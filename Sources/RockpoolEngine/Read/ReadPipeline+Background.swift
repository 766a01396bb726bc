// Fetches for which no client waits: refreshes of stale entries (RFC 5861 §3), and the whole after a HEAD or a range request
// (docs/caching.md#ranges *offline-first*).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Revalidates the entry in the background, so that the next read is fresh (RFC 5861 §3). At most one refresh per key runs at a time.
    func refresh(_ entry: CacheEntry, for context: RequestContext) {
        if upstreams.budgets.wait(for: .refresh, with: context.identity.secrets, at: context.plan.upstream, now: now()) != nil { return }
        // On a slow connection a large body would delay requests that clients wait for (docs/caching.md#bandwidth).
        if entry.response.bodyLength >= Bandwidth.leastBytes.bytes, upstreams.isNarrow(context.plan.upstream) { return }
        fetchBehind(context, varyingBy: entry.response.validity.varyNames ?? [])
    }

    /// Sends the same read as Rockpool's own request in the background. At most one per key runs at a time.
    private func fetchBehind(_ context: RequestContext, varyingBy names: [HTTPField.Name] = []) {
        let key = context.fetchKey(varyingBy: names)
        guard inFlight.beginRefresh(of: key) else { return }
        let behind = context.behind(at: now())
        Task {
            defer { inFlight.endRefresh(of: key) }
            var behind = behind
            let reply = await readServerState(&behind)
            if case .stream(let source, _) = reply.body { try? await source.drain() }
        }
    }

    /// Fetches the whole in the background after a HEAD or a range request, if nothing is stored and the whole may be stored, is small and
    /// has a validator. An origin without validators may have produced the response for this request alone.
    ///
    /// Otherwise clients that send HEAD first, or read in ranges, would find nothing stored while the upstream is unreachable.
    func fetchWhole(after head: ResponseHead, length: Int64?, for context: RequestContext, by forwarding: Forwarding) {
        guard context.plan.policy == .offlineFirst, forwarding.found.allSatisfy(\.response.isHeadOnly), !context.isBehind,
            context.exchange.body == nil,
            // A signature covers the method, and may cover the range.
            context.identity.signature.isEmpty && context.presigned == nil || context.exchange.signer != nil,
            context.request.method == .head || context.request.fields.contains(.range), !portal.isDoubted(plan: context.plan),
            head.hasValidator, let whole = whole(of: head, length: length)
        else { return }
        let category = context.plan.category ?? active.category(named: CategoryGuess.name(for: whole.head)) ?? .ephemeral
        let limit = min(category.maxObject?.bytes ?? .max, cheapWhole.bytes)
        let isLargeForTheWay = whole.length >= Bandwidth.leastBytes.bytes && upstreams.isNarrow(context.plan.upstream)
        guard whole.length <= limit, !isLargeForTheWay,
            upstreams.budgets.wait(for: .refresh, with: context.identity.secrets, at: context.plan.upstream, now: now()) == nil,
            case .store = responses.storability(
                of: whole.head, for: context.behind(at: now()), among: [], receivedAt: now())
        else { return }
        fetchBehind(context)
    }

    /// Returns head and length of the whole if the response gives them, otherwise nil.
    private func whole(of head: ResponseHead, length: Int64?) -> (head: ResponseHead, length: Int64)? {
        switch head.status {
        case 200: return length.map { (head, $0) }
        case 206:
            guard case .part(_, of: let length?) = PartialResponse.part(of: head) else { return nil }
            return (PartialResponse.holding(0..<length, of: length, fields: head.fields), length)
        default: return nil
        }
    }
}

extension ResponseStore {
    /// Stores the head of a response to HEAD where nothing of the response to GET is stored, so that HEAD is answered while the upstream is
    /// unreachable. A later response to GET takes its place.
    /// - Parameter length: of a GET's body, in bytes; nil if it was not announced.
    /// - Returns: true if it is being stored.
    func keepHead(
        _ head: ResponseHead, length: Int64?, sentAt: Moment, for context: RequestContext, found: [CacheEntry]
    ) -> Bool {
        let receivedAt = now()
        guard context.request.method == .head, context.plan.policy == .offlineFirst, context.exchange.body == nil,
            found.allSatisfy(\.response.isHeadOnly), !portal.isDoubted(plan: context.plan), head.status != 206
        else { return false }
        var asGet = context
        asGet.exchange.request.method = .get
        guard case .store(let plan) = storability(of: head, for: asGet, among: [], receivedAt: receivedAt) else { return false }
        let category = category(of: head, context.plan)
        let key = asGet.key(in: plan.partition).ofHead
        guard !found.isEmpty || admission.admits(key, to: category) else { return false }
        var response = response(with: head, plan: plan, category: category, sentAt: sentAt, receivedAt: receivedAt, for: asGet)
        response.head.fields[.contentLength] = length.map { String($0) }
        response.isHeadOnly = true
        Task { [response] in
            guard await portal.isConfirmed(plan: context.plan, since: sentAt.at - UpstreamClient.confirmedForCopies) else { return }
            do { _ = try await cache.replace(key, by: response, body: ByteBuffer(), category: category) } catch { logger.notStored(error) }
        }
        return true
    }
}
