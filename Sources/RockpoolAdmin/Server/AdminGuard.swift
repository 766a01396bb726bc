// Access control of the admin API: no foreign Host, no foreign Origin, no change without the token (docs/security-model.md#admin-callers).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Refuses requests that a browser could send for another site, or to a name rebound to this server's address (DNS rebinding).
struct AdminGuard: RouterMiddleware {
    typealias Context = AdminContext

    /// Allowed host names besides the loopback names.
    let hosts: Set<String>
    let token: String

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        // With two Host fields, two recipients may pick different ones (RFC 9112 §3.2). The first is the authority; others stay in the
        // fields.
        if request.headers[.hostField] != nil { return .problem(.badRequest, detail: "more than one Host") }
        if !context.isThroughSocket, let refusal = refusal(of: request, isLocal: context.isLocal) { return refusal }
        return try await next(request, context)
    }

    private func refusal(of request: Request, isLocal: Bool) -> Response? {
        guard let authority = request.head.authority, let host = try? Authority.parse(authority[...]), isOurs(host.host) else {
            return .problem(.misdirected, detail: "Host must be a loopback name or one of admin.hosts")
        }
        if let origin = request.headers[.origin], !isOwnOrigin(origin, authority: authority) {
            return .problem(.forbiddenTarget, detail: "requests from other sites are refused (Origin: \(origin))")
        }
        if let site = request.headers[.secFetchSite], site != "same-origin", site != "none" {
            return .problem(.forbiddenTarget, detail: "requests from other sites are refused (Sec-Fetch-Site: \(site))")
        }
        // A remote client needs the token even to read, except for paths that disclose no user data: the page, health, the certificate
        // (docs/reference/admin-api.md#access).
        let isOpen =
            isLocal || Self.openPaths.contains(request.uri.path) || SetupDocument.adminPaths.contains(request.uri.path)
            || request.uri.path.hasPrefix("/dashboard/")
        let isReading = request.method == .get || request.method == .head
        let isFree = request.uri.path == Self.exchangePath || (isOpen && isReading)
        guard isFree || request.carries(token: token) else {
            return .tokenNeeded(by: isLocal ? "changes" : "calls from other machines")
        }
        return isReading || saysItsType(request) ? nil : .problem(.unsupportedMediaType, detail: Self.wantedType(of: request))
    }

    /// True if the request has no body, or its `Content-Type` is the one that changes use. A page can send the types a form, plain text or
    /// no type has to another site without a CORS preflight (Fetch, *CORS-safelisted*), so they are refused.
    private func saysItsType(_ request: Request) -> Bool {
        let hasBody = request.headers[.transferEncoding] != nil || (request.headers[.contentLength] ?? "0") != "0"
        guard hasBody, !RockpoolCore.MediaType.isJSON(request.headers) else { return true }
        return request.uri.path == Self.importPath && request.headers[.contentType]?.lowercased().hasPrefix("application/warc") == true
    }

    private static func wantedType(of request: Request) -> String {
        "a change with a body needs Content-Type: \(request.uri.path == importPath ? "application/warc" : "application/json")"
    }

    /// Takes a one-time code in place of the token.
    private static let exchangePath = "/v1/dashboard/token"

    private static let importPath = "/v1/cache/import"

    private static let openPaths: Set<String> = ["/", "/healthz", "/readyz", "/metrics", "/proxy.pac", "/ca.pem", "/openapi.yaml"]

    private func isOurs(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || IPAddress(host)?.isLoopback == true || hosts.contains(host)
    }

    private func isOwnOrigin(_ origin: String, authority: String) -> Bool { origin == "http://\(authority)" }
}

extension Request {
    /// Compares the token in constant time for a given length.
    func carries(token: String) -> Bool {
        guard let given = headers[.authorization], given.lowercased().hasPrefix("bearer ") else { return false }
        let (a, b) = (Array(given.dropFirst(7).utf8), Array(token.utf8))
        guard a.count == b.count else { return false }
        return zip(a, b).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

extension Response {
    /// The refusal of a call without the token.
    static func tokenNeeded(by callers: String) -> Response {
        var refusal = Response.problem(
            .unauthorized, detail: "\(callers) need Authorization: Bearer with the token in <state_dir>/admin-token")
        refusal.headers[.wwwAuthenticate] = "Bearer realm=\"rockpool\""
        return refusal
    }
}

/// The context of an admin request: its connection, and the way it came.
struct AdminContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// True if the request came through the owner's socket, where no token is needed.
    let isThroughSocket: Bool
    /// True if the client runs on this machine.
    let isLocal: Bool
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        channel = source.channel
        isLocal = channel.clientAddress?.meansLoopback ?? true
        isThroughSocket = channel.isOwnersSocket
    }
}
