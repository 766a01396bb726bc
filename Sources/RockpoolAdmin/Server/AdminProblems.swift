// Turns the framework's errors into problem documents: unknown paths and internal errors (RFC 9457, docs/reference/admin-api.md#problems).
import Hummingbird
import RockpoolCore
import RockpoolEngine

/// Turns errors into problem documents, and forbids browsers to guess the type of any response.
struct AdminProblems: RouterMiddleware {
    typealias Context = AdminContext

    let index: RouteIndex

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        var response = await answer(request, context: context, next: next)
        // Responses may contain text that an attacker chose (docs/security-model.md#dashboard).
        response.headers[.xContentTypeOptions] = "nosniff"
        return response
    }

    private func answer(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async -> Response {
        do {
            return try await next(request, context)
        } catch let refusal as Refusal {
            return .problem(Problem(refusal))
        } catch let problem as Problem {
            return .problem(problem)
        } catch let error as HTTPError where error.status == .notFound {
            return missing(for: request)
        } catch let error as HTTPError {
            return .problem(.badRequest, detail: "\(error.body ?? error.status.reasonPhrase)")
        } catch {
            return .problem(.notQueueable, detail: "\(error)")
        }
    }

    /// Returns 405 if the path exists with another method, else 404.
    private func missing(for request: Request) -> Response {
        let methods = index.methods(of: request.uri.path)
        guard !methods.isEmpty else { return .problem(.notFound, detail: "there is no \(request.uri.path)") }
        let allowed = methods.union(methods.contains(.get) ? [.head] : []).map(\.rawValue).sorted().joined(separator: ", ")
        var response = Response.problem(.methodNotAllowed, detail: "\(request.uri.path) takes \(allowed)")
        response.headers[.allow] = allowed
        return response
    }
}
