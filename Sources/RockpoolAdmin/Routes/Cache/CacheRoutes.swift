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
