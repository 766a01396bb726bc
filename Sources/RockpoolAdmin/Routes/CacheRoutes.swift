// `/v1/cache`: lists, shows, explains, purges and pins stored responses (docs/reference/admin-api.md#cache).
import HTTPTypes
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct CacheRoutes {
    let cache: CacheStore
    let news: StaleNews
    let active: ActiveConfiguration
    let explainer: ReadExplainer
    let prefetch: PrefetchRoute
    let bundles: BundleRoutes
    let now: @Sendable () -> Timestamp

    func add(to router: Router<AdminContext>) {
        let routes = router.group("/v1/cache")
        routes.get { request, _ in try await list(request: request) }
        routes.delete { request, _ in try await purge(request: request) }
        routes.get("entry") { request, _ in try await show(request: request) }
        routes.get("explain") { request, _ in try await explain(request: request) }
        routes.put("pins") { request, _ in try await pin(request: request) }
        routes.delete("pins") { request, _ in try await unpin(request: request) }
        prefetch.add(to: routes)
        bundles.add(to: routes)
    }

    private func list(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: PagePlace.names.union(CacheListFilter.names))
        let place = try PagePlace(query)
        let cursor = try query.one(named: "cursor").map { text throws(Refusal) in
            guard let cursor = CacheCursor(text: text) else { throw .badRequest("cursor must be the `next` of a page") }
            return cursor
        }
        let filter = try CacheListFilter(query, now: now())
        let rows = try await cache.list(filter, after: cursor, offset: place.offset, limit: place.limit)
        if rows.isEmpty, let category = filter.category {
            let inUse = try await cache.usage().byCategory.keys
            _ = try CacheSelector.category(category, active: active, inUse: Set(inUse))
        }
        let next = rows.count == place.limit ? rows.last?.cursor.text : nil
        let offline = OfflineUse(active: active, now: now())
        var document: JSONValue = [
            "items": .array(rows.map { CacheDocument.item(of: $0, offline: offline) }), "next": .optional(next),
        ]
        if place.isCounted { document["total"] = .integer(try await cache.count(filter)) }
        return .json(document)
    }

    private func show(request: Request) async throws -> Response {
        let url = try active.request(url: try AdminQuery(request, known: ["url"]).required(named: "url")).url
        let entries = try await cache.entries(ofURL: url)
        guard !entries.isEmpty else { throw Refusal.unknown("nothing is stored for \(url)") }
        let now = self.now()
        return .json([
            "url": .string(url), "pinned": .bool(entries.contains(where: \.isPinned)),
            "variants": .array(entries.map { StoredVariant.json($0, isSecret: active.isSecret, now: now) }),
        ])
    }

    private func explain(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["url", "method", "header"])
        guard let method = HTTPRequest.Method(try query.one(named: "method") ?? "GET") else {
            throw Refusal.badRequest("method is not a valid method name")
        }
        var fields: HTTPFields = [:]
        for line in query.all(named: "header") { fields.append(try HTTPField(line: line)) }
        return .json(await explainer.explain(try active.request(method, url: try query.required(named: "url"), fields: fields)))
    }

    private func purge(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: Set(CacheSelector.names + ["dryRun"]))
        let dryRun = try query.flag(named: "dryRun")
        let inUse = try await cache.usage().byCategory.keys
        let filter = try CacheSelector.filter(from: query, active: active, inUse: Set(inUse), now: now())
        let removed = try await cache.remove(where: filter, dryRun: dryRun)
        if case .matching(let selection) = filter, !dryRun { news.tell(selection) }
        return .json(["dryRun": .bool(dryRun), "entries": .integer(removed.entries), "bytes": .integer(removed.bytes)])
    }

    private func pin(request: Request) async throws -> Response {
        let (url, entries) = try await stored(for: request)
        guard let changed = try await cache.pin(url: url, true) else {
            let (usage, settings) = (try await cache.usage(), active.configuration.storage)
            let cap = settings.cacheLimit.bytes / 100 * Int64(settings.pinCapPercent)
            let wanted = entries.filter { !$0.isPinned }.reduce(0) { $0 + $1.response.bodyLength }
            return .problem(
                .conflict,
                detail:
                    "pinning \(wanted.counted("more byte")) would exceed storage.pin_cap: \(usage.pinnedBytes) of \(cap) bytes are pinned already"
            )
        }
        return .json(["url": .string(url), "pinned": true, "entries": .integer(entries.count), "changed": .integer(changed)])
    }

    private func unpin(request: Request) async throws -> Response {
        _ = try await cache.pin(url: try await stored(for: request).url, false)
        return Response(status: .noContent)
    }

    /// The stored entries of the request's `url`. Throws a 404 if there are none.
    private func stored(for request: Request) async throws -> (url: String, entries: [CacheEntry]) {
        let url = try active.request(url: try AdminQuery(request, known: ["url"]).required(named: "url")).url
        let entries = try await cache.entries(ofURL: url)
        guard !entries.isEmpty else { throw Refusal.unknown("nothing is stored for \(url)") }
        return (url, entries)
    }
}

extension HTTPField {
    /// Parses a field line `Name: value`. Throws a 400 otherwise.
    init(line: String) throws(Refusal) {
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else {
            throw .badRequest("a header is written Name: value")
        }
        try self.init(name: name, text: String(parts[1]))
    }

    /// Throws a 400 for an invalid field value.
    init(name: HTTPField.Name, text: String) throws(Refusal) {
        let value = String(text.drop { $0 == " " || $0 == "\t" })
        guard HTTPField.isValidValue(value) else { throw .badRequest("the value of \(name.rawName) has characters not allowed in a field") }
        self.init(name: name, value: value)
    }
}

/// The query of `/v1/cache` (docs/reference/admin-api.md#cache).
extension CacheListFilter {
    static let names: Set<String> = ["prefix", "path", "category", "status", "olderThanSeconds", "pinned", "stale", "sort"]
    /// The most statuses and classes of one call.
    private static let mostStatuses = 20

    /// Throws a 400 that names what is possible.
    init(_ query: AdminQuery, now: Timestamp) throws(Refusal) {
        self.init()
        (prefix, category, text) = (try query.one(named: "prefix") ?? "", try query.one(named: "category"), try query.one(named: "path"))
        for word in query.all(named: "status").flatMap({ $0.split(separator: ",") }) {
            guard let pattern = ExchangeFilter.StatusPattern(word), statuses.count < Self.mostStatuses else {
                throw .badRequest("status is one such as 404, a class such as 5xx, or up to \(Self.mostStatuses) of these with commas")
            }
            statuses.append(pattern.range)
        }
        if try query.one(named: "olderThanSeconds") != nil {
            storedBefore = now - .seconds(try query.number(named: "olderThanSeconds", in: 0...Int64(Int32.max), default: 0))
        }
        if try query.one(named: "pinned") != nil { isPinned = try query.flag(named: "pinned") }
        if try query.one(named: "stale") != nil { isStale = try query.flag(named: "stale") }
        guard let order = Order(rawValue: try query.one(named: "sort") ?? Order.url.rawValue) else {
            throw .badRequest("sort is \(Order.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        self.order = order
    }
}

/// A stored response as it appears in lists (docs/reference/admin-api.md#cache).
enum CacheDocument {
    static func item(of listing: CacheListing, offline: OfflineUse) -> JSONValue {
        let until = offline.end(of: listing)
        return [
            "url": .string(listing.shownURL), "method": .string(listing.method), "category": .string(listing.category),
            "status": .integer(listing.status), "bytes": .integer(listing.bytes), "storedAt": .time(listing.storedAt),
            "freshUntil": .time(listing.freshUntil), "lastUsedAt": .time(listing.lastUsedAt), "pinned": .bool(listing.isPinned),
            "identity": .string(listing.isPrivate ? "private" : "shared"),
            "principal": listing.isPrivate ? .string(listing.identity) : .null, "variants": .integer(listing.variants),
            "hits": .integer(listing.hits),
            "offline": .bool(until.map { $0 > offline.now } ?? true), "offlineUntil": .time(until),
        ]
    }
}

/// URLs in requests about the cache: of an origin, or as clients of a gateway know them (docs/reference/admin-api.md#cache).
extension ActiveConfiguration {
    /// Returns the request for a URL; one at the listener of a single gateway stands for that of its origin.
    /// - Throws: a 400 for anything but an absolute http or https URL.
    func request(_ method: HTTPRequest.Method = .get, url: String, fields: HTTPFields = [:]) throws(Refusal) -> RequestHead {
        let named = try RequestHead(method: method, url: url, fields: fields)
        guard routes.upstream(for: named.origin) == nil else { return named }
        let gateways = configuration.upstreams.filter { $0.gatewaySettings?.listens(at: named.origin) == true }
        guard let upstream = gateways.first, gateways.count == 1, upstream.gatewaySettings?.path == nil else { return named }
        return RequestHead(method: method, origin: upstream.origin, target: named.target, fields: fields)
    }
}

extension GatewaySettings {
    /// True for the listener's own address, or another loopback address with its port.
    fileprivate func listens(at place: OriginAddress) -> Bool {
        guard let colon = listen.lastIndex(of: ":"), Int(listen[listen.index(after: colon)...]) == place.port else { return false }
        let host = String(listen[..<colon])
        return host == place.host || [host, place.host].allSatisfy { $0 == "localhost" || IPAddress($0)?.meansLoopback == true }
    }
}

/// The entries a purge selects: at least one selector is required, so that nothing is removed by mistake; several must all apply
/// (docs/reference/admin-api.md#purge).
enum CacheSelector {
    /// All selectors; `url` and `group` may be repeated.
    static let names = ["url", "prefix", "glob", "group", "category", "upstream", "olderThanSeconds"]

    /// Throws a 400 unless a valid selector is given, and a 404 for an unknown upstream or category.
    static func filter(
        from query: AdminQuery, active: ActiveConfiguration, inUse: Set<String>, now: Timestamp
    ) throws(Refusal)
        -> CacheFilter
    {
        guard Self.names.contains(where: { !query.all(named: $0).isEmpty }) else {
            throw .badRequest("name at least one of \(Self.names.joined(separator: ", ")); none is given")
        }
        var selection = CacheSelection()
        for url in query.all(named: "url") { selection.urls.append(try active.request(url: url).url) }
        selection.groups = query.all(named: "group")
        if selection.groups.contains("") { throw .badRequest("group is empty") }
        selection.prefix = try pattern("prefix", from: query)
        selection.glob = try pattern("glob", from: query)
        if !query.all(named: "category").isEmpty {
            selection.category = try category(try query.required(named: "category"), active: active, inUse: inUse)
        }
        if !query.all(named: "upstream").isEmpty { selection.origin = try origin(try query.required(named: "upstream"), active: active) }
        if !query.all(named: "olderThanSeconds").isEmpty {
            let age = try query.number(named: "olderThanSeconds", in: 0...Int64(Int32.max), default: 0)
            selection.storedBefore = now - .seconds(age)
        }
        return .matching(selection)
    }

    /// A beginning or a pattern of URLs, which names at least the scheme.
    private static func pattern(_ name: String, from query: AdminQuery) throws(Refusal) -> String? {
        guard !query.all(named: name).isEmpty else { return nil }
        let value = try query.required(named: name)
        guard value.hasPrefix("http://") || value.hasPrefix("https://") else {
            throw .badRequest("\(name) begins as a URL, such as https://api.example.com/v1/")
        }
        return value
    }

    /// Returns the name of a category that is configured or in use. Throws a 404 with these names otherwise.
    static func category(_ value: String, active: ActiveConfiguration, inUse: Set<String>) throws(Refusal) -> String {
        let known = Set(active.configuration.categories.map(\.name)).union(inUse)
        guard known.contains(value) else {
            if let unread = active.unread { throw .unknown("no category \(value.prefix(40)) is known: \(unread)") }
            throw .unknown("no category \(value.prefix(40)); there are \(known.sorted().joined(separator: ", "))")
        }
        return value
    }

    /// The origin of a declared upstream given by name, or any origin given by URL.
    private static func origin(_ value: String, active: ActiveConfiguration) throws(Refusal) -> OriginAddress {
        if let upstream = active.routes.upstream(named: value) { return upstream.origin }
        if value.contains("://") {
            let request = try RequestHead(url: value)
            guard request.target == "/" else { throw .badRequest("upstream is a name or an origin; use prefix for a part of one") }
            return request.origin
        }
        throw .unknown(upstream: value, among: active)
    }
}

extension Refusal {
    /// A 404 response.
    static func unknown(_ detail: String) -> Refusal { Refusal(status: 404, problem: "not-found", detail: detail) }

    /// A 404 response for the name of an upstream that is not declared, with those that are.
    static func unknown(upstream name: String, among active: ActiveConfiguration) -> Refusal {
        if let unread = active.unread { return .unknown("no upstream \(name.prefix(40)) is known: \(unread)") }
        let names = active.routes.upstreams.map(\.name).joined(separator: ", ")
        return .unknown("no upstream \(name.prefix(40)); declared are \(names.isEmpty ? "none" : names)")
    }
}
