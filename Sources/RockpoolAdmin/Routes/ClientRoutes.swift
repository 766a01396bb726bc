// The client setup: `/ca.pem`, `/proxy.pac`, and the addresses of the listeners (docs/reference/admin-api.md#clients).
import AdminPages
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

struct ClientRoutes {
    let active: ActiveConfiguration
    let doors: ClientEndpoints

    func add(to router: Router<AdminContext>) {
        router.get("/ca.pem") { _, _ in certificate() }
        router.get("/proxy.pac") { request, _ in script(for: request) }
        router.get("/v1/clients") { _, _ in Response.json(document) }
    }

    private func certificate() -> Response {
        guard let pem = FileManager.default.contents(atPath: doors.certificatePath) else {
            return .problem(.notFound, detail: "there is no certificate authority yet; make it with: rockpool ca init")
        }
        return Response(
            status: .ok,
            headers: [
                .contentType: "application/x-pem-file", .cacheControl: "no-store",
                .contentDisposition: #"attachment; filename="rockpool-ca.pem""#,
            ],
            body: .init(byteBuffer: ByteBuffer(bytes: pem)))
    }

    private func script(for request: Request) -> Response {
        let text = ProxyAutoConfiguration.script(active.configuration, proxy: proxy(asSeenBy: request))
        return Response(
            status: .ok, headers: [.contentType: "application/x-ns-proxy-autoconfig", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: text)))
    }

    /// The proxy's address. If it listens on every address, the host is the one the client used for this request.
    private func proxy(asSeenBy request: Request) -> String {
        guard var place = HostAndPort(doors.proxy), place.isWildcard else { return doors.proxy }
        place.host = request.head.authority.flatMap { try? Authority.parse($0[...]).host } ?? "127.0.0.1"
        return place.description
    }

    private var document: JSONValue {
        let gateways = doors.gateways().sorted { $0.key < $1.key }.map { ($0.key, JSONValue.string($0.value)) }
        let hasAuthority = FileManager.default.fileExists(atPath: doors.certificatePath)
        return [
            "proxy": .string(doors.proxy),
            "gateways": .object(JSONObject(gateways)),
            "certificate": hasAuthority ? .string(doors.certificatePath) : .null,
        ]
    }
}

/// The addresses clients connect to, and the certificate authority they must trust.
package struct ClientEndpoints: Sendable {
    /// `host:port` of the forward proxy as bound.
    package var proxy: String
    /// Upstream name → `host:port`, now: a reload opens and closes gateways.
    package var gateways: @Sendable () -> [String: String]
    /// The certificate authority's PEM file, which may not exist yet.
    package var certificatePath: String

    package init(proxy: String, gateways: @escaping @Sendable () -> [String: String], certificatePath: String) {
        self.proxy = proxy
        self.gateways = gateways
        self.certificatePath = certificatePath
    }
}

/// `/setup` of the admin API: how clients trust the certificate (docs/guide/https.md#setup-page).
struct SetupRoutes {
    let certificatePath: String

    func add(to router: Router<AdminContext>) {
        router.get("/setup") { request, _ in reply(with: .page, to: request) }
        router.get("/setup/:file") { request, context in file(named: context.parameters.get("file") ?? "", for: request) }
    }

    private func file(named name: String, for request: Request) -> Response {
        guard let document = SetupDocument(rawValue: "/" + name), document != .page, document != .mark else {
            return .problem(.notFound, detail: "the setup page has no such file")
        }
        return reply(with: document, to: request)
    }

    private func reply(with document: SetupDocument, to request: Request) -> Response {
        let pem = FileManager.default.contents(atPath: certificatePath).map { String(decoding: $0, as: UTF8.self) }
        let content = SetupContent(pem: pem, url: "http://\(request.head.authority ?? "localhost")/setup", base: SetupDocument.adminPath)
        guard let bytes = content.bytes(of: document) else {
            return .problem(.notFound, detail: "there is no certificate authority yet; make it with: rockpool ca init")
        }
        var fields: HTTPFields = [
            .contentType: document.mediaType, .cacheControl: "no-store", .contentSecurityPolicy: SetupDocument.policy,
            .referrerPolicy: "no-referrer",
        ]
        if let name = document.fileName { fields[.contentDisposition] = "attachment; filename=\"\(name)\"" }
        return Response(status: .ok, headers: fields, body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

/// `/`, the files of the page, and `/openapi.yaml`: all are compiled in (docs/reference/admin-api.md#pages;
/// docs/security-model.md#dashboard).
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
