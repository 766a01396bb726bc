// Access to a collector: reports prove themselves by their signature, all else needs the token or the socket (docs/fleet.md#sites).
import HTTPTypes
import Hummingbird

/// Refuses callers of the TCP port that lack the token.
struct CollectorGuard: RouterMiddleware {
    typealias Context = AdminContext

    let token: String

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        let isReport = request.method == .post && request.uri.path == CollectorRoutes.reports
        let isHealth = (request.method == .get || request.method == .head) && request.uri.path == CollectorRoutes.health
        guard context.isThroughSocket || isReport || isHealth || request.carries(token: token) else {
            return .tokenNeeded(by: "calls through the port")
        }
        return try await next(request, context)
    }
}
