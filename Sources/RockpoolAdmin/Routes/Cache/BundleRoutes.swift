// `/v1/cache/export` and `/v1/cache/import`: streamed export and import of bundles (docs/reference/admin-api.md#bundles).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

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
