// `/v1/identities`: the identities of which something is kept, and forgetting one (docs/reference/admin-api.md#identities).
import Hummingbird
import RockpoolCore
import RockpoolEngine

struct IdentityRoutes {
    let identities: KnownIdentities
    let commands: OutboxCommands

    func add(to router: Router<AdminContext>) {
        let routes = router.group("/v1/identities")
        routes.get { request, _ in try await list(request) }
        routes.delete(":id") { request, context in try await forget(context.parameters.get("id"), request) }
    }

    private func list(_ request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["cursor", "limit"])
        let limit = Int(try query.number(named: "limit", in: 1...1000, default: 100))
        let after = try query.one(named: "cursor") ?? ""
        let page = try await identities.list().filter { $0.name > after }.prefix(limit + 1)
        return .json([
            "items": .array(page.prefix(limit).map(Self.document)),
            "next": .optional(page.count > limit ? page.prefix(limit).last?.name : nil),
        ])
    }

    private static func document(_ identity: KnownIdentity) -> JSONValue {
        [
            "id": .string(identity.name), "upstreams": .array(identity.upstreams.sorted().map { .string($0) }),
            "entries": .integer(identity.entries), "bytes": .integer(identity.bytes), "waiting": .integer(identity.waiting),
            "credential": .bool(identity.hasCredential), "sealed": .bool(identity.isSealed), "usedAt": .time(identity.usedAt),
        ]
    }

    private func forget(_ id: String?, _ request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["writes"])
        let writes = try query.one(named: "writes") ?? "keep"
        guard ["keep", "drop"].contains(writes) else { throw Refusal.badRequest("writes is keep or drop") }
        guard let id, let known = try await identities.list().first(where: { $0.name == id }) else {
            throw Refusal.unknown("nothing is kept of the identity \(id ?? "")")
        }
        var (dropped, waiting) = (0, known.waiting)
        if writes == "drop" { (dropped, waiting) = try await commands.discardWrites(of: id) }
        let forgotten = try await identities.forget(id)
        return .json([
            "id": .string(id), "entries": .integer(forgotten.copies), "bytes": .integer(forgotten.bytes),
            "credential": .bool(forgotten.hadCredential), "dropped": .integer(dropped), "waiting": .integer(waiting),
        ])
    }
}
