// The client setup: `/ca.pem`, `/proxy.pac`, and the addresses of the listeners (docs/reference/admin-api.md#clients).
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
