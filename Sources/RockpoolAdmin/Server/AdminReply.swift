// JSON responses and problem documents of the admin API (docs/reference/admin-api.md#conventions; RFC 9457).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

extension Response {
    static func json(_ value: JSONValue, status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(bytes: value.serialized())))
    }

    static func problem(_ problem: Problem) -> Response {
        let (head, body) = problem.response
        return Response(status: .init(code: head.status), headers: head.fields, body: .init(byteBuffer: body))
    }

    static func problem(_ type: ProblemType, detail: String) -> Response { .problem(Problem(type, detail: detail)) }
}

extension Request {
    /// The request's body as a JSON object; an empty body is the empty object. Nil if it is no object or exceeds `limit`.
    func jsonObject(upTo limit: Int = .mib(1)) async -> JSONObject? {
        guard let body = try? await self.body.collect(upTo: limit) else { return nil }
        if body.readableBytes == 0 { return JSONObject() }
        return (try? JSONValue.parse(Array(body.readableBytesView)))?.object
    }
}

/// Turns errors into problem documents, and forbids browsers to guess the type of any response (RFC 9457,
/// docs/reference/admin-api.md#problems).
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

/// The routes of a router by path (RFC 9110 §15.5.6).
struct RouteIndex: Sendable {
    private let routes: [(parts: [String], methods: Set<HTTPRequest.Method>)]

    init(_ router: Router<AdminContext>) {
        let byPath = Dictionary(grouping: router.routes) { $0.path.description }
        routes = byPath.map { path, routes in (Self.parts(of: path), Set(routes.map(\.method))) }
    }

    /// The methods of `path`; empty if no route matches. A literal segment takes precedence over a variable one.
    func methods(of path: String) -> Set<HTTPRequest.Method> {
        let asked = Self.parts(of: path)
        let found = routes.filter { $0.parts.count == asked.count && zip($0.parts, asked).allSatisfy { $0 == $1 || Self.isVariable($0) } }
        let literal = found.filter { !$0.parts.contains(where: Self.isVariable) }
        return (literal.isEmpty ? found : literal).reduce(into: []) { $0.formUnion($1.methods) }
    }

    private static func parts(of path: String) -> [String] { path.split(separator: "/").map(String.init) }

    private static func isVariable(_ part: String) -> Bool { part.hasPrefix(":") || part.hasPrefix("{") }
}

/// JSON values of numbers and times, as the documents of the admin API hold them.
extension JSONValue {
    static func integer(_ value: some BinaryInteger) -> JSONValue { .number(JSONNumber(Int64(clamping: value))) }

    static func real(_ value: Double) -> JSONValue { JSONNumber(literal: "\(value)").map { .number($0) } ?? .null }

    /// The value of a whole number in any form of JSON: 60, 60.0, 6e1. Nil for another value.
    var wholeNumber: Int64? { integer ?? number.flatMap { Double($0.literal) }.flatMap(Int64.init(exactly:)) }

    static func time(_ value: Timestamp?) -> JSONValue { .optional(value.map(RFC3339.format)) }
}
