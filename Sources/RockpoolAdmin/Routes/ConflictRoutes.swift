// `/v1/conflicts`: lists, shows, resolves and undoes conflicts (docs/reference/admin-api.md#conflicts).
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct ConflictRoutes {
    /// The most conflicts on one page.
    private static let pageLimit: Int64 = 1000
    /// The most bytes of a resolution: a representation of the default `queue.max_body`, and some more.
    private static let resolutionLimit = Int.mib(16)

    let data: DataStore
    let active: ActiveConfiguration
    let commands: OutboxCommands
    let documents: OperationDocuments

    func add(to router: Router<AdminContext>) {
        let routes = router.group("/v1/conflicts")
        routes.get { request, _ in try await list(request: request) }
        routes.get(":id") { _, context in try await one(id: id(in: context)) }
        routes.post(":id/resolve") { request, context in try await resolve(id: id(in: context), request: request) }
        routes.post(":id/undo") { request, context in try await undo(id: id(in: context), request: request) }
    }

    private func id(in context: AdminContext) async throws -> String? {
        try await NamedID.whole(context.parameters.get("id"), of: .conflict, in: data)
    }

    /// Lists conflicts, the newest first; without `state` only those that wait for a decision.
    private func list(request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["state", "upstream", "entity", "limit", "cursor", "nodes"])
        let places = FleetPlaces(data: data, isAsked: try query.flag(named: "nodes"))
        try await places.prepare()
        let page = try await data.conflicts(
            ConflictFilter(
                upstream: try query.one(named: "upstream"), entity: try query.one(named: "entity"), isOpen: try Self.isOpen(in: query),
                limit: Int(try query.number(named: "limit", in: 1...Self.pageLimit, default: 100)),
                cursor: try query.number(named: "cursor", in: 1...Int64.max, default: .max)))
        if page.items.isEmpty, let name = try query.one(named: "upstream"), active.routes.upstream(named: name) == nil {
            throw Refusal.unknown(upstream: name, among: active)
        }
        let items = try await places.add(to: page.items.map(ConflictDocument.summary), of: page.items)
        return .json(["items": .array(items), "next": .optional(page.next.map { String($0) })])
    }

    private static func isOpen(in query: AdminQuery) throws(Refusal) -> Bool? {
        switch try query.one(named: "state") {
        case nil, "open": true
        case "closed": false
        case "all", "open,closed", "closed,open": nil
        default: throw .badRequest("state takes open, closed or all")
        }
    }

    private func one(id: String?) async throws -> Response {
        guard let id, let conflict = try await data.conflict(id: id) else { return notFound(id: id) }
        return .json(ConflictDocument.json(of: conflict, seen: try await data.operation(id: conflict.operation)?.baseSeen))
    }

    private func resolve(id: String?, request: Request) async throws -> Response {
        guard let document = await request.jsonObject(upTo: Self.resolutionLimit) else {
            return .problem(.badRequest, detail: #"send {"resolution", "merged"}, \#(Self.resolutionLimit >> 20) MiB at most"#)
        }
        let choice = try ConflictChoice(document)
        guard let id, let resolved = try await commands.resolve(conflict: id, as: choice.resolution, merged: choice.merged) else {
            return notFound(id: id)
        }
        return .json(ConflictDocument.json(of: resolved.conflict))
    }

    /// Queues the operation that restores the losing side, and returns it.
    private func undo(id: String?, request: Request) async throws -> Response {
        let word = try AdminQuery(request, known: ["side"]).one(named: "side")
        let side = word.flatMap { Conflict.Resolution(rawValue: $0) }
        guard word == nil || side == .mine || side == .theirs else { return .problem(.badRequest, detail: "side takes mine or theirs") }
        guard let id, let operation = try await commands.undo(conflict: id, side: side) else { return notFound(id: id) }
        return .json(try await documents.document(of: operation))
    }

    private func notFound(id: String?) -> Response { .problem(.notFound, detail: "no conflict \(id ?? "")") }
}
