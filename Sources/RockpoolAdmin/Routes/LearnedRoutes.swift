// `/v1/learned`: the resources that upstreams have learned from their traffic (docs/reference/admin-api.md#learned).
import Hummingbird
import RockpoolCore
import RockpoolEngine

struct LearnedRoutes {
    let learning: ResourceLearning
    let active: ActiveConfiguration

    func add(to router: Router<AdminContext>) {
        let routes = router.group("/v1/learned")
        routes.get { request, _ in try await list(request) }
        routes.delete { request, _ in try await forget(request) }
    }

    private func list(_ request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["upstream"])
        let wanted = try query.filled(named: "upstream")
        let known = try await known(wanted)
        let items = known.flatMap { upstream, learner in learner.report.map { Self.document($0, of: upstream) } }
        return .json(["items": .array(items), "next": .null])
    }

    private func forget(_ request: Request) async throws -> Response {
        let query = try AdminQuery(request, known: ["upstream", "collection"])
        let upstream = try query.required(named: "upstream")
        let collection = try query.filled(named: "collection")
        _ = try await known(upstream)
        let count = await learning.forget(collection, of: upstream)
        return .json(["upstream": .string(upstream), "forgotten": .integer(count)])
    }

    /// What upstreams have learned, or one of them: nothing where its resources are declared. Throws a 404 for an unknown upstream.
    private func known(_ wanted: String?) async throws(Refusal) -> [(upstream: String, learner: ResourceLearner)] {
        if let wanted, !active.configuration.upstreams.contains(where: { $0.name == wanted }) {
            throw .unknown("no upstream \(wanted.prefix(40)) is declared")
        }
        return await learning.known().filter { wanted == nil || $0.upstream == wanted }
    }

    private static func document(_ report: LearnedReport, of upstream: String) -> JSONValue {
        [
            "upstream": .string(upstream), "state": .string(report.state.rawValue), "collection": .string(report.path),
            "resource": report.resource.map(document) ?? .null, "reason": .string(report.reason), "missing": .optional(report.missing),
        ]
    }

    /// The resource by the names of the configuration.
    private static func document(_ resource: Resource) -> JSONValue {
        [
            "collection": .string(resource.collection), "item": .optional(resource.item), "items": .string(resource.items),
            "element": .string(resource.element), "envelope": .string(resource.envelope),
            "content": .string(resource.content), "id": .string(resource.id),
            "version": .string(resource.version), "updatedAt": .optional(resource.updatedAt),
            "profile": .optional(resource.profile?.rawValue), "creates": .bool(resource.learned?.isCreating == true),
        ]
    }
}
