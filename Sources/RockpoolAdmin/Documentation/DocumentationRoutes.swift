// `/v1/docs`: the documentation, where nothing else can be reached (docs/reference/admin-api.md#docs).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore

struct DocumentationRoutes {
    /// Nil where none was installed.
    let pages: DocumentationPages?

    func add(to router: Router<AdminContext>) {
        router.get("/v1/docs") { _, _ in list() }
        router.get("/v1/docs/:name") { _, context in page(context.parameters.get("name") ?? "") }
        router.get("/v1/docs/:name/:page") { _, context in
            page((context.parameters.get("name") ?? "") + "/" + (context.parameters.get("page") ?? ""))
        }
    }

    private func list() -> Response {
        .json([
            "items": .array((pages?.pages ?? []).map { ["name": .string($0.name), "title": .string($0.title)] }), "next": .null,
        ])
    }

    private func page(_ name: String) -> Response {
        guard let text = pages?.text(of: name) else {
            return .problem(
                .notFound, detail: pages == nil ? "no documentation is installed with this program" : "there is no page \(name)")
        }
        return Response(
            status: .ok, headers: [.contentType: "text/markdown; charset=utf-8", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: text)))
    }
}
