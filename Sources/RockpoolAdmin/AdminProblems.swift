// What the framework throws, as problem documents: no such path, and faults of our own (RFC 9457, contract §5).
import Hummingbird
import RockpoolCore
import RockpoolEngine

/// Turns errors into problem documents.
struct AdminProblems: RouterMiddleware {
    typealias Context = AdminContext

    func handle(
        _ request: Request, context: AdminContext, next: (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let refusal as Refusal {
            return .problem(Problem(refusal))
        } catch let problem as Problem {
            return .problem(problem)
        } catch let error as HTTPError where error.status == .notFound {
            return .problem(.notFound, "there is no \(request.method.rawValue) \(request.uri.path)")
        } catch let error as HTTPError {
            return .problem(.badRequest, "\(error.body ?? error.status.reasonPhrase)")
        } catch {
            return .problem(.notQueueable, "\(error)")
        }
    }
}
