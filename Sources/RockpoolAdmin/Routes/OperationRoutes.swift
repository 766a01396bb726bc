// `/v1/operations`: the outbox listed, and steered one operation at a time (contract §4, §5).
import HTTPTypes
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct OperationRoutes {
    /// Operations on one page at most.
    private static let pageLimit = 1000

    let engine: Engine

    func add(to router: Router<AdminContext>) {
        let routes = router.group("/v1/operations")
        routes.get { request, _ in try await list(request) }
        routes.post("flush") { _, _ in await flush() }
        routes.get(":id") { _, context in try await one(context.parameters.get("id")) }
        routes.post(":id/retry") { _, context in try await steer(.retry, context.parameters.get("id")) }
        routes.post(":id/cancel") { _, context in try await steer(.cancel, context.parameters.get("id")) }
        routes.delete(":id") { _, context in
            let response = try await steer(.discard, context.parameters.get("id"))
            return response.status == .ok ? Response(status: .noContent) : response
        }
    }

    private func list(_ request: Request) async throws -> Response {
        let query = request.uri.queryParameters
        var states = Set(OperationState.allCases.filter { !$0.hasEnded })
        if let asked = query["state"].map(String.init) {
            let words = asked.split(separator: ",").map(String.init)
            states = asked == "all" ? Set(OperationState.allCases) : Set(words.compactMap(OperationState.init))
            guard asked == "all" || states.count == Set(words).count else {
                return .problem(.badRequest, "state takes \(OperationState.allCases.map(\.rawValue).joined(separator: ", ")) or all")
            }
        }
        let limit = query["limit"].flatMap { Int($0) } ?? 100
        guard (1...Self.pageLimit).contains(limit) else { return .problem(.badRequest, "limit is 1…\(Self.pageLimit)") }
        let cursor = query["cursor"].map(String.init)
        guard cursor == nil || cursor.flatMap({ Int64($0) }) != nil else {
            return .problem(.badRequest, "cursor is what `next` of a page said")
        }
        let filter = OperationFilter(
            states: states, lane: query["lane"].map(String.init), upstream: query["upstream"].map(String.init), limit: limit,
            cursor: cursor.flatMap { Int64($0) })
        let page = try await engine.data.operations(filter)
        return .json(["items": .array(page.items.map(OperationDocument.json)), "next": .optional(page.next.map { String($0) })])
    }

    private func one(_ id: String?) async throws -> Response {
        guard let id, let operation = try await engine.data.operation(id: id) else { return notFound(id) }
        return .json(OperationDocument.json(operation))
    }

    private func notFound(_ id: String?) -> Response { .problem(.notFound, "no operation \(id ?? "")") }

    private func steer(_ steering: OperationSteering, _ id: String?) async throws -> Response {
        guard let id, let operation = try await engine.data.operation(id: id) else { return notFound(id) }
        switch steering.verdict(on: operation) {
        case .refused(let why): return .problem(.conflict, why)
        case .allowed(let state, let reason, _):
            do {
                let steered = try await engine.data.transition(
                    id: id, to: state, reason: reason, nextAttemptAt: state == .pending ? engine.now() : nil, from: steering.allowedFrom,
                    now: engine.now())
                engine.events.tell(.operation(id: id, state: steered.state))
                return .json(OperationDocument.json(steered))
            } catch let error as DataStoreError {
                guard case .illegal = error else { throw error }
                return .problem(.conflict, "\(error)")
            }
        }
    }

    /// Makes everything that waits for time due now.
    private func flush() async -> Response {
        do {
            let count = try await engine.data.makeAllDue(now: engine.now())
            engine.events.wake()
            return .json(["flushed": .integer(count)])
        } catch {
            return .problem(.notQueueable, "the outbox cannot be read: \(error)")
        }
    }
}
