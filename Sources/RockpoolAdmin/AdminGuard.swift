// Who may call the admin API: no foreign Host, no foreign Origin, no change without the token (security.md §4 *admin CSRF*).
import HTTPTypes
import Hummingbird
import RockpoolCore
import RockpoolEngine

/// Refuses what a browser on another site, or a name that was rebound to us, could send.
struct AdminGuard: RouterMiddleware {
    typealias Context = AdminContext

    /// Names beside the loopback ones.
    let hosts: Set<String>
    let token: String

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        // Two readers could take either (RFC 9112 §3.2). The first is the authority, the others stay among the fields.
        if request.headers[.hostField] != nil { return .problem(.badRequest, "more than one Host") }
        if !context.isThroughSocket, let refusal = refusal(request, isLocal: context.isLocal) { return refusal }
        return try await next(request, context)
    }

    private func refusal(_ request: Request, isLocal: Bool) -> Response? {
        guard let authority = request.head.authority, let host = try? Authority.parse(authority[...]), isOurs(host.host) else {
            return .problem(.misdirected, "Host must be a loopback name or one of admin.hosts")
        }
        if let origin = request.headers[.origin], !isOwnOrigin(origin, authority) {
            return .problem(.forbiddenTarget, "requests from other sites are refused (Origin: \(origin))")
        }
        if let site = request.headers[Self.secFetchSite], site != "same-origin", site != "none" {
            return .problem(.forbiddenTarget, "requests from other sites are refused (Sec-Fetch-Site: \(site))")
        }
        // From elsewhere even reading needs it, but what tells nothing of anybody: the page itself, health, the certificate (contract §4).
        let isOpen = isLocal || Self.openPaths.contains(request.uri.path) || request.uri.path.hasPrefix("/dashboard/")
        let isReading = request.method == .get || request.method == .head
        guard (isOpen && isReading) || hasToken(request) else {
            var refusal = Response.problem(
                .unauthorized,
                "\(isLocal ? "changes" : "calls from other machines") need Authorization: Bearer with the token in <state_dir>/admin-token")
            refusal.headers[.wwwAuthenticate] = "Bearer realm=\"rockpool\""
            return refusal
        }
        return isReading || saysItsType(request) ? nil : .problem(.unsupportedMediaType, Self.wantedType(request))
    }

    /// Whether it has no body, or says that it is what changes are told in. The types that a page may send to another site without
    /// asking (a form's, plain text, none) are others (Fetch, *CORS-safelisted*).
    private func saysItsType(_ request: Request) -> Bool {
        let hasBody = request.headers[.transferEncoding] != nil || (request.headers[.contentLength] ?? "0") != "0"
        guard hasBody, !RockpoolCore.MediaType.isJSON(request.headers) else { return true }
        return request.uri.path == Self.importPath && request.headers[.contentType]?.lowercased().hasPrefix("application/warc") == true
    }

    private static func wantedType(_ request: Request) -> String {
        "a change with a body needs Content-Type: \(request.uri.path == importPath ? "application/warc" : "application/json")"
    }

    private static let importPath = "/v1/cache/import"

    private static let openPaths: Set<String> = ["/", "/healthz", "/readyz", "/metrics", "/proxy.pac", "/ca.pem", "/openapi.yaml"]

    private static let secFetchSite = HTTPField.Name("Sec-Fetch-Site") ?? .origin

    private func isOurs(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || IPAddress(host)?.isLoopback == true || hosts.contains(host)
    }

    private func isOwnOrigin(_ origin: String, _ authority: String) -> Bool { origin == "http://\(authority)" }

    /// Compared in time that does not depend on where the two differ.
    private func hasToken(_ request: Request) -> Bool {
        guard let given = request.headers[.authorization], given.lowercased().hasPrefix("bearer ") else { return false }
        let (a, b) = (Array(given.dropFirst(7).utf8), Array(token.utf8))
        guard a.count == b.count else { return false }
        return zip(a, b).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
