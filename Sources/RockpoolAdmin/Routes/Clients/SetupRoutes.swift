// `/setup` of the admin API: how clients trust the certificate (docs/guide/https.md#setup-page).
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

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
