// An item that is known only from a list is readable at its own URL while the upstream is unreachable (docs/outbox.md#listed-items).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// An item's element in a cached list.
struct ListedItem: Sendable {
    var element: JSONValue
    /// The list that contains it.
    var list: CacheEntry
    /// The time until which own writes are part of the list.
    var at: Timestamp { list.response.includesWritesUntil }
}

extension ReadYourWrites {
    /// The maximum number of lists of one collection that are searched for an item.
    private static let listLimit = 4

    /// Returns the reply to a read of an item from a list that is newer than what `reply` shows, with the trace of that reply; nil where
    /// `reply` stands. Only while the upstream is unreachable, under `offline-first`, for the item's own URL without a query.
    func listedReply(insteadOf reply: inout Reply, _ trace: Trace, for context: RequestContext) async -> (Reply, Trace)? {
        let (request, plan) = (context.request, context.plan)
        guard request.method == .get || request.method == .head, plan.policy == .offlineFirst, plan.strategy != .networkOnly,
            plan.store != .never, !request.target.contains("?"), let place = place(of: context), place.entityID != nil,
            isMissing(reply, trace) || isOldCopy(reply, trace, for: context),
            let found = await listed(in: place, for: context, after: isMissing(reply, trace) ? nil : trace.fetchedAt, isServed: true)
        else { return nil }
        if !isMissing(reply, trace) {
            guard found.list.response.isKnownState, let shownAt = trace.fetchedAt, found.at > shownAt else { return nil }
            // A summary does not replace a copy that has more members.
            if reply.head.status == 200 {
                guard let bytes = await bytes(of: &reply), let body = try? JSONValue.parse(Array(bytes.readableBytesView)),
                    let new = place.resource.item(body, replacedBy: found.element), new != body
                else { return nil }
            }
        }
        return shown(found, of: place.resource, after: trace)
    }

    private func shown(_ found: ListedItem, of resource: Resource, after trace: Trace) -> (Reply, Trace) {
        let (stored, now) = (found.list.response, now())
        let freshness = Freshness.of(stored, now: now)
        var head = ResponseHead(status: 200, fields: [.contentType: "application/json", .rockpoolListed: "1"])
        head.fields[.date] = stored.head.fields[.date]
        head.fields[.age] = String(max(0, freshness.age.seconds))
        if stored.isDirty { head.fields[.rockpoolDirty] = "1" }
        var trace = trace
        trace.verdict = .stale
        trace.fetchedAt = found.at
        trace.cacheStatus = CacheStatus(hit: true, ttl: min(freshness.remaining.seconds, -1), detail: Reuse.StaleReason.offline.detail)
        cache.use(found.list)
        let body = ByteBuffer(bytes: resource.body(of: found.element).serialized())
        return (Reply(head: head, body: .bytes(body), trace: trace), trace)
    }

    /// True if nothing is stored that could answer, and the upstream gave no answer.
    private func isMissing(_ reply: Reply, _ trace: Trace) -> Bool {
        guard trace.verdict == .failed, [502, 504].contains(reply.head.status), let error = trace.proxyStatus?.error else { return false }
        return ![.tlsProtocolError, .tlsCertificateError, .tlsAlertReceived, .destinationIPProhibited].contains(error)
    }

    /// True if the reply is a copy of the item, or of its absence, that stands in for an upstream that is away.
    private func isOldCopy(_ reply: Reply, _ trace: Trace, for context: RequestContext) -> Bool {
        trace.verdict == .stale && !context.isReachable && [200, 404, 410].contains(reply.head.status)
    }

    /// Returns the item's element in the newest list of its collection that the client may read.
    /// - Parameters:
    ///   - moment: Only a list that shows a later state is searched; nil searches every list.
    ///   - isServed: True if the element is served: then the list must be within its offline window, and its variant must suit the
    ///     request. Otherwise the list must be a state that the client may have seen last.
    func listed(
        in view: OverlayScope, for context: RequestContext, after moment: Timestamp? = nil, isServed: Bool = false
    ) async -> ListedItem? {
        guard let entity = context.plan.entity, let path = entity.collection else { return nil }
        let readable = StoragePartition.readable(by: context.identity.partition)
        var newest: ListedItem?
        for url in [path, path + "/"].map({ context.request.origin.url + $0 }) {
            let lists = (try? await cache.copies(ofPath: url, in: readable, limit: Self.listLimit)) ?? []
            for list in lists where list.response.includesWritesUntil > newest?.at ?? moment ?? .distantPast {
                guard list.response.head.status == 200, isServed ? mayServe(list, to: context) : list.response.isKnownState,
                    let bytes = try? await reads.lookup.content(of: list, limit: OwnWriteEffects.representationLimit),
                    let body = try? JSONValue.parse(bytes), let element = view.resource.element(entity.id ?? "", in: body)
                else { continue }
                newest = ListedItem(element: element, list: list)
            }
        }
        return newest
    }

    private func mayServe(_ list: CacheEntry, to context: RequestContext) -> Bool {
        guard let request = try? RequestHead(url: list.key.url), case let plan = active.routes.plan(for: request),
            plan.policy == .offlineFirst, plan.strategy != .networkOnly
        else { return false }
        let category = plan.category ?? active.category(named: list.response.category)
        guard now() - list.response.responseTime <= category?.offlineWindow ?? .forever else { return false }
        return Vary.mayStandIn(list.response, for: reads.lookup.selecting(for: context.request, among: [list.response]))
    }
}
