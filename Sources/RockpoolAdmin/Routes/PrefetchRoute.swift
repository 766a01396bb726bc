// `POST /v1/cache/prefetch`: fetches URLs before they are needed (docs/reference/admin-api.md#prefetch).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct PrefetchRoute {
    /// The most URLs of one call.
    static let limit = 1000

    /// Answers the requests: each one passes the whole pipeline.
    let engine: Engine

    func add(to routes: RouterGroup<AdminContext>) {
        routes.post("prefetch") { request, _ in try await prefetch(request: request) }
    }

    private func prefetch(request: Request) async throws -> Response {
        guard let body = await request.jsonObject() else {
            throw Refusal.badRequest(#"send {"urls": ["https://…"], "pin": false, "headers": {"Accept-Language": "de"}}"#)
        }
        let wish = try Wish(body)
        // What is no URL is refused one by one.
        let urls = wish.urls.map { (try? engine.active.request(url: $0).url) ?? $0 }
        let outcomes = await engine.prefetch(urls, fields: wish.fields, pin: wish.pin)
        var items: [JSONValue] = []
        for outcome in outcomes { items.append(Self.json(of: outcome, offlineUntil: try await offlineUntil(outcome))) }
        return .json(["items": .array(items), "stored": .integer(outcomes.count(where: \.isStored)), "next": .null])
    }

    /// The time until which the stored response is served while its upstream is away; nil without an end, or if nothing is stored.
    private func offlineUntil(_ outcome: Prefetched) async throws -> Timestamp? {
        guard outcome.isStored else { return nil }
        let use = OfflineUse(active: engine.active, now: engine.now())
        let ends = try await engine.cache.list(prefix: outcome.url, limit: 100).filter { $0.url == outcome.url }.map { use.end(of: $0) }
        return ends.contains(nil) ? nil : ends.compactMap(\.self).max()
    }

    private static func json(of outcome: Prefetched, offlineUntil: Timestamp?) -> JSONValue {
        [
            "url": .string(outcome.url), "status": outcome.status.map { .integer($0) } ?? .null, "stored": .bool(outcome.isStored),
            "reason": .optional(outcome.reason), "bytes": .integer(outcome.bytes), "pinned": .bool(outcome.isPinned ?? false),
            "offlineUntil": .time(offlineUntil),
        ]
    }

    /// The parsed request document.
    private struct Wish {
        var urls: [String] = []
        var pin = false
        var fields: HTTPFields = [:]

        init(_ body: JSONObject) throws(Refusal) {
            for (name, value) in body {
                switch name {
                case "urls":
                    guard let list = value.array, list.allSatisfy({ $0.string != nil }) else {
                        throw .badRequest("urls is a list of URLs")
                    }
                    urls = list.compactMap(\.string)
                case "pin":
                    guard let flag = value.bool else { throw .badRequest("pin is true or false") }
                    pin = flag
                case "headers":
                    guard let members = value.object else { throw .badRequest("headers is an object of names and values") }
                    for (name, value) in members { fields.append(try Self.field(named: name, value: value)) }
                default: throw .badRequest("unknown member \(name.prefix(40)); there are urls, pin and headers")
                }
            }
            guard (1...PrefetchRoute.limit).contains(urls.count) else {
                throw .badRequest("urls holds 1 to \(PrefetchRoute.limit) URLs, not \(urls.count)")
            }
        }

        private static func field(named name: String, value: JSONValue) throws(Refusal) -> HTTPField {
            guard let fieldName = HTTPField.Name(name), let text = value.string else {
                throw .badRequest("headers is an object of names and values")
            }
            return try HTTPField(name: fieldName, text: text)
        }
    }
}

/// `/v1/cache/export` and `/v1/cache/import`: streamed export and import of bundles (docs/reference/admin-api.md#bundles).
struct BundleRoutes {
    let cache: CacheStore
    let reads: ReadPipeline
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    func add(to routes: RouterGroup<AdminContext>) {
        routes.get("export") { request, _ in try export(request: request) }
        routes.post("shapes") { request, _ in try await shapes(request: request) }
        routes.post("import") { request, _ in try await take(request: request) }
    }

    /// An export that fails midway ends without the last chunk, so that the client recognizes it as incomplete.
    private func export(request: Request) throws -> Response {
        let query = try AdminQuery(request, known: ["prefix", "category"])
        let bundle = BundleExport(
            cache: cache, active: active, prefix: try query.one(named: "prefix") ?? "", category: try query.one(named: "category"), now: now
        )
        return Response(
            status: .ok, headers: [.contentType: "application/warc", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await bundle.run { try await writer.write($0) }
                try await writer.finish(nil)
            })
    }

    /// By POST, because it needs the token: the names of members may be of an identity.
    private func shapes(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["prefix"])
        let found = try await StoredShapes(cache: cache, reads: reads).documents(prefix: try query.one(named: "prefix") ?? "")
        return .json(["items": .array(found.items), "next": .null, "unread": .number(JSONNumber(Int64(found.unread)))])
    }

    private func take(request: Request) async throws -> Response {
        var bundle = BundleImport(cache: cache, reads: reads, active: active, now: now)
        do {
            for try await chunk in request.body { try await bundle.take(chunk) }
            return .json(try bundle.finish().json)
        } catch let fault as WARCFault {
            let before = bundle.report.imported.counted("entry before it was", "entries before it were")
            return .problem(.badRequest, detail: "\(fault); \(before) imported")
        }
    }
}
