// The search of cached lists for one item (docs/outbox.md#listed-items).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// Finds items in cached lists, and shows them at their own URLs.
struct ListedItems: Sendable {
    /// The maximum number of lists of one collection that are searched for an item.
    private static let listLimit = 4

    let cache: CacheStore
    let lookup: EntryLookup
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    /// Returns the reply that shows an item as listed, with the trace of a read that found nothing newer.
    func reply(_ found: ListedItem, of resource: Resource, after trace: Trace) -> (Reply, Trace) {
        let (stored, now) = (found.list.response, now())
        let freshness = Freshness.of(stored, now: now)
        // A list has the type of its items.
        let type = stored.head.fields[.contentType] ?? "application/json"
        var head = ResponseHead(status: 200, fields: [.contentType: type, .rockpoolListed: "1"])
        head.fields[.date] = stored.head.fields[.date]
        head.fields[.age] = String(max(0, freshness.age.seconds))
        if stored.isDirty { head.fields[.rockpoolDirty] = "1" }
        var trace = trace
        trace.verdict = .stale
        trace.includes = found.at
        trace.cacheStatus = CacheStatus(hit: true, ttl: min(freshness.remaining.seconds, -1), detail: Reuse.StaleReason.offline.detail)
        cache.use(found.list)
        let body = ByteBuffer(bytes: resource.body(of: found.element).serialized())
        return (Reply(head: head, body: .bytes(body), trace: trace), trace)
    }

    /// Returns the item's element in the newest list of its collection that the client may read.
    /// - Parameters:
    ///   - moment: Only a list that shows a later state is searched; nil searches every list.
    ///   - isServed: True if the element is served: then the list must be within its offline window, and its variant must suit the
    ///     request. Otherwise the list must be a state that the client may have seen last.
    func item(
        in view: OverlayScope, for context: RequestContext, after moment: Tick? = nil, isServed: Bool = false
    ) async -> ListedItem? {
        guard let entity = context.plan.entity, let path = entity.collection else { return nil }
        let readable = StoragePartition.readable(by: context.identity.partition)
        var newest: ListedItem?
        for url in [path, path + "/"].map({ context.request.origin.url + $0 }) {
            let lists = (try? await cache.copies(ofPath: url, in: readable, limit: Self.listLimit)) ?? []
            for list in lists where list.response.includesWritesUntil > newest?.at ?? moment ?? .first {
                guard list.response.head.status == 200, isServed ? mayServe(list, to: context) : list.response.isKnownState,
                    let bytes = try? await lookup.content(of: list, limit: OwnWriteEffects.representationLimit),
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
        guard now() - list.response.responseTime <= active.offlineWindow(of: plan, for: list.response) else { return false }
        let selecting = lookup.selecting(for: context.request, among: [list.response])
        let own = lookup.forOwner(list, selecting: selecting, isByAuthorization: context.identity.isByAuthorization)
        return Vary.mayStandIn(own, for: selecting)
    }
}
