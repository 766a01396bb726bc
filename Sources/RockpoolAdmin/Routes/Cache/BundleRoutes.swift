// `/v1/cache/export` and `/v1/cache/import`: streamed export and import of bundles (docs/reference/admin-api.md#bundles).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

struct BundleRoutes {
    let engine: Engine

    func add(to routes: RouterGroup<AdminContext>) {
        routes.get("export") { request, _ in try export(request) }
        routes.post("import") { request, _ in try await take(request) }
    }

    /// An export that fails midway ends without the last chunk, so that the client recognizes it as incomplete.
    private func export(_ request: Request) throws -> Response {
        let query = try AdminQuery(request, known: ["prefix", "category"])
        let bundle = BundleExport(engine: engine, prefix: try query.one("prefix") ?? "", category: try query.one("category"))
        return Response(
            status: .ok, headers: [.contentType: "application/warc", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                try await bundle.run { try await writer.write($0) }
                try await writer.finish(nil)
            })
    }

    private func take(_ request: Request) async throws -> Response {
        var bundle = BundleImport(engine: engine)
        do {
            for try await chunk in request.body { try await bundle.take(chunk) }
            return .json(try bundle.finish().json)
        } catch let fault as WARCFault {
            return .problem(.badRequest, "\(fault); \(bundle.report.imported) entries before it were imported")
        }
    }
}
