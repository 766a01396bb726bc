// `/`, the files of the page, and `/openapi.yaml`: all are compiled in (docs/reference/admin-api.md#pages;
// docs/security-model.md#dashboard).
import AdminPages
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

struct PageRoutes {
    /// The page may fetch its own files and the API from this server only, and no script or markup can be injected into it.
    static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "base-uri 'none'",
        "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
    ].joined(separator: "; ")

    func add(to router: Router<AdminContext>) {
        router.get("/") { _, _ in Self.reply(with: .index) }
        router.get("/openapi.yaml") { _, _ in Self.reply(with: .openAPI) }
        router.get("/dashboard/:file") { _, context in
            let name = context.parameters.get("file") ?? ""
            return AdminPage.parts[name].map(Self.reply) ?? .problem(.notFound, detail: "the dashboard has no \(name)")
        }
    }

    private static func reply(with page: AdminPage) -> Response {
        Response(
            status: .ok,
            headers: [
                .contentType: page.mediaType, .cacheControl: "no-store", .contentSecurityPolicy: policy,
                .referrerPolicy: "no-referrer", .crossOriginOpenerPolicy: "same-origin", .crossOriginResourcePolicy: "same-origin",
            ],
            body: .init(byteBuffer: ByteBuffer(bytes: page.bytes)))
    }
}
