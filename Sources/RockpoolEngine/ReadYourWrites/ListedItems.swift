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

// MARK: the type of ids

extension EntryLookup {
    /// The maximum number of copies that are searched for ids.
    private static let idLimit = 4

    /// Returns the id and the URL of the item that a create has made, as `ServerID.inAnswer`. Where `Location` alone shows the id, it has
    /// the type that the ids of the collection have in the client's copies.
    /// - Parameter json: the body of the answer; nil if it is no JSON.
    func created(
        by head: ResponseHead, json: JSONValue?, to request: RequestHead, resource: Resource?, partition: String?
    ) async -> ServerMapping? {
        let text = ServerID.inAnswer(head, json: json, to: request, resource: resource)
        let number = ServerID.inAnswer(head, json: json, to: request, resource: resource, idsAreNumbers: true)
        guard text != number, let resource, await idsAreNumbers(below: request, resource: resource, partition: partition) else {
            return text
        }
        return number
    }

    /// True if a stored list of the collection shows numbers only, or, where none is stored, its stored items do.
    private func idsAreNumbers(below request: RequestHead, resource: Resource, partition: String?) async -> Bool {
        let readable = StoragePartition.readable(by: partition)
        let path = request.path.hasSuffix("/") ? String(request.path.dropLast()) : request.path
        let collection = request.origin.url + path
        for url in [collection, collection + "/"] {
            if let known = await idsAreNumbers(at: url, in: readable, resource: resource) { return known }
        }
        for partition in readable {
            for url in ((try? await cache.urls(prefix: collection + "/", in: partition)) ?? []).sorted().suffix(Self.idLimit) {
                if let known = await idsAreNumbers(at: url, in: readable, resource: resource) { return known }
            }
        }
        return false
    }

    private func idsAreNumbers(at url: String, in readable: [StoragePartition], resource: Resource) async -> Bool? {
        for copy in (try? await cache.copies(ofPath: url, in: readable, limit: Self.idLimit)) ?? [] where copy.response.head.status == 200 {
            guard let bytes = try? await content(of: copy, limit: OwnWriteEffects.representationLimit),
                let known = (try? JSONValue.parse(bytes)).flatMap({ resource.idsAreNumbers(in: $0) })
            else { continue }
            return known
        }
        return nil
    }
}
