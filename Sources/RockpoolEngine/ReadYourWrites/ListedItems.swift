// What cached lists show of an item: its element, readable at its own URL while the upstream is unreachable (docs/outbox.md#listed-items),
// and the type of its id (docs/outbox.md#local-ids).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// An item's element in a cached list.
struct ListedItem: Sendable {
    var element: JSONValue
    /// The list that contains it.
    var list: CacheEntry
    /// Own writes that have ended by then are part of the list.
    var at: Tick { list.response.includesWritesUntil }
}

/// Finds items in cached lists, and shows them at their own URLs.
struct ListedItems: Sendable {
    /// The maximum number of lists of one collection that are searched for an item.
    private static let listLimit = 4
    /// The maximum number of paths of lists whose form is looked at.
    private static let emptyLimit = 64

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

    /// Returns the list of a collection below an item that its upstream has none of yet: empty, in the form of the newest list of the same resource
    /// that the client may read; of one with a query only if there is no other.
    func empty(in view: OverlayScope, for context: RequestContext) async -> JSONValue {
        let (path, origin) = (context.request.path, context.request.origin.url)
        guard !view.resource.items.isEmpty else { return view.resource.emptyList(at: path) }
        let readable = StoragePartition.readable(by: context.identity.partition)
        var paths: Set<String> = []
        for partition in readable {
            for prefix in view.resource.pathPrefixes {
                let urls = ((try? await cache.urls(prefix: origin + prefix, in: partition)) ?? []).lazy
                    .filter { view.resource.isList(String($0.dropFirst(origin.count))) }
                paths.formUnion(urls.map { String($0.prefix { $0 != "?" }) })
            }
        }
        var known: [CacheEntry] = []
        for url in paths.sorted().suffix(Self.emptyLimit) {
            known += ((try? await cache.copies(ofPath: url, in: readable, limit: Self.listLimit)) ?? [])
                .filter { $0.response.head.status == 200 && $0.response.isKnownState }
        }
        let rank = { (list: CacheEntry) in (list.key.url.contains("?") ? 0 : 1, list.response.asked) }
        for list in known.sorted(by: { rank($0) > rank($1) }) {
            guard let bytes = try? await lookup.content(of: list, limit: OwnWriteEffects.representationLimit),
                let body = try? JSONValue.parse(bytes), view.resource.ids(in: body) != nil,
                let other = try? RequestHead(url: list.key.url).path
            else { continue }
            return view.resource.emptyList(at: path, like: (body, other))
        }
        return view.resource.emptyList(at: path)
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

extension ReadYourWrites {
    /// The search of cached lists for one item.
    var lists: ListedItems { ListedItems(cache: cache, lookup: reads.lookup, active: active, now: now) }

    /// Returns the reply to a read of an item from a list that is newer than what `reply` shows, with the trace of that reply; nil where
    /// `reply` stands. Only while the upstream is unreachable, under `offline-first`, for the item's own URL without a query, or for a query that
    /// names a row.
    func listedReply(insteadOf reply: inout Reply, _ trace: Trace, for context: RequestContext) async -> (Reply, Trace)? {
        let (request, plan) = (context.request, context.plan)
        var context = context
        if let row = plan.entity?.row(selectedBy: request.target), Self.readsRows(request) { context.plan.entity = row }
        let isRow = context.plan.entity != plan.entity
        guard request.method == .get || request.method == .head, plan.policy == .offlineFirst, plan.strategy != .networkOnly,
            plan.store != .never, isRow || !request.target.contains("?"), let place = place(of: context), place.entityID != nil,
            case let isMissing = trace.isUnanswered(by: reply.head.status),
            isMissing || !context.isReachable && trace.isOldCopy(reply.head.status),
            let found = await lists.item(in: place, for: context, after: isMissing ? nil : trace.includes, isServed: true)
        else { return nil }
        if !isMissing {
            guard found.list.response.isKnownState, let shownAt = trace.includes, found.at > shownAt else { return nil }
            // A summary does not replace a copy that has more members.
            if reply.head.status == 200 {
                guard let bytes = await bytes(of: &reply), let body = try? JSONValue.parse(Array(bytes.readableBytesView)),
                    let new = place.resource.item(body, replacedBy: found.element), new != body
                else { return nil }
            }
        }
        return lists.reply(found, of: place.resource, after: trace)
    }

    /// False for a client that reads one row as an object, as PostgREST has it: a list of one is none.
    private static func readsRows(_ request: RequestHead) -> Bool { request.fields[.accept]?.contains(".object") != true }
}

extension Trace {
    /// True if nothing is stored that could answer, and the upstream gave no answer.
    fileprivate func isUnanswered(by status: Int) -> Bool {
        guard verdict == .failed, [502, 504].contains(status), let error = proxyStatus?.error else { return false }
        return ![.tlsProtocolError, .tlsCertificateError, .tlsAlertReceived, .destinationIPProhibited].contains(error)
    }

    /// True if the reply is a copy of the item, or of its absence, that stands in for the upstream.
    fileprivate func isOldCopy(_ status: Int) -> Bool { verdict == .stale && [200, 404, 410].contains(status) }
}

// MARK: - The type of ids

/// The type that an API's ids have in JSON, as the client's copies and the answers to creates show it (docs/outbox.md#local-ids).
extension EntryLookup {
    /// The maximum number of copies that are searched for ids.
    private static let idLimit = 4

    /// Returns the id and the URL of the item that a create has made, as `ServerID.inAnswer`. Where `Location` alone shows the id, it has
    /// the type that the ids of the collection have.
    /// - Parameter json: the body of the answer; nil if it is no JSON.
    func created(
        by head: ResponseHead, json: JSONValue?, to request: RequestHead, resource: Resource?, partition: String?
    ) async -> ServerMapping? {
        let text = ServerID.inAnswer(head, json: json, to: request, resource: resource)
        let number = ServerID.inAnswer(head, json: json, to: request, resource: resource, idsAreNumbers: true)
        guard let resource else { return text }
        guard text != number else {
            if let text { data.localIDs.note(areNumbers: text.id.isNumber, at: resource.idPlace(at: request.origin)) }
            return text
        }
        return await idsAreNumbers(at: request, resource: resource, partition: partition) == true ? number : text
    }

    /// True if the ids of a resource are numbers; nil if nothing has shown them. The newest known copies tell: those of the list, else those of
    /// other lists and of items, else what was learned.
    /// - Parameter request: a create.
    func idsAreNumbers(at request: RequestHead, resource: Resource, partition: String?) async -> Bool? {
        if let learned = resource.learned, learned.ids != .number { return false }
        let place = resource.idPlace(at: request.origin)
        if let known = data.localIDs.areNumbers(at: place) { return known }
        let readable = StoragePartition.readable(by: partition)
        var found = await listedIDsAreNumbers(at: request, resource: resource, in: readable)
        if found == nil { found = await storedIDsAreNumbers(at: request.origin, resource: resource, in: readable) }
        if let found { data.localIDs.note(areNumbers: found, at: place) }
        // Of a list without entries its description has told it.
        return found ?? resource.learned.map { $0.ids == .number }
    }

    private func listedIDsAreNumbers(at request: RequestHead, resource: Resource, in readable: [StoragePartition]) async -> Bool? {
        let path = request.path.hasSuffix("/") ? String(request.path.dropLast()) : request.path
        let collection = request.origin.url + path
        for url in [collection, collection + "/"] {
            if let known = await idsAreNumbers(at: url, in: readable, resource: resource) { return known }
        }
        return nil
    }

    private func storedIDsAreNumbers(at origin: OriginAddress, resource: Resource, in readable: [StoragePartition]) async -> Bool? {
        for partition in readable {
            for prefix in resource.pathPrefixes {
                let urls = ((try? await cache.urls(prefix: origin.url + prefix, in: partition)) ?? []).lazy
                    .filter { resource.shows($0.dropFirst(origin.url.count)) }
                for url in urls.prefix(Self.idLimit) {
                    let path = String(url.prefix { $0 != "?" })
                    if let known = await idsAreNumbers(at: path, in: readable, resource: resource) { return known }
                }
            }
        }
        return nil
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

extension Resource {
    /// What names the ids of its items among those of all origins.
    fileprivate func idPlace(at origin: OriginAddress) -> String { "\(origin.url)\(label) \(id)" }
}
