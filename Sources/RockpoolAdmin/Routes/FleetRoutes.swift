// `GET /v1/fleet/nodes` and `/v1/fleet/status`, and the fleet in `/v1/status` (docs/reference/admin-api.md#fleet).
import Hummingbird
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct FleetRoutes {
    let data: DataStore

    func add(to router: Router<AdminContext>) {
        router.get("/v1/fleet/nodes") { _, _ in Response.json(["items": .array(try await nodes()), "next": .null]) }
        router.delete("/v1/fleet/nodes/:id") { _, context in try await forget(context.parameters.get("id") ?? "") }
        router.get("/v1/fleet/status") { _, _ in
            let counts = try await data.counts()
            let outbox = OperationState.allCases.map { ($0.rawValue, JSONValue.integer(counts[$0, default: 0])) }
            return Response.json(
                ["nodes": .array(try await nodes()), "outbox": .object(JSONObject(outbox)), "sites": []])
        }
    }

    private func forget(_ node: String) async throws -> Response {
        do {
            return try await data.forgetNode(node)
                ? Response(status: .noContent) : .problem(.notFound, detail: "no node of the fleet is called \(node)")
        } catch DataStoreError.unavailable(let detail) { return .problem(.conflict, detail: detail) }
    }

    private func nodes() async throws -> [JSONValue] {
        let (own, differences) = (data.fleet?.node, data.fleet?.differences ?? [])
        return try await data.fleetNodes().map { node -> JSONValue in
            [
                "id": .string(node.id), "name": .string(node.name), "own": .bool(node.id == own), "state": .string(node.state.rawValue),
                "epoch": .integer(node.epoch), "renewedSecondsAgo": .real(node.age), "behind": .integer(node.lag),
                "held": .integer(node.held), "inflight": .integer(node.inFlight),
                "differs": .array((differences.first { $0.node == node.id }?.keys ?? []).map { .string($0) }),
            ]
        }
    }

    /// How this node stands; nil without a fleet.
    static func standing(of data: DataStore) -> JSONValue? {
        data.fleet.map { fleet in
            [
                "node": .string(fleet.name), "database": .string(fleet.absence == nil ? "there" : "away"),
                "detail": .optional(fleet.absence), "nodes": .integer(fleet.nodes), "held": .integer(fleet.held),
                "survivesDatabaseHost": .bool(fleet.survivesHost),
                "differences": .array(
                    fleet.differences.map { ["node": .string($0.name), "keys": .array($0.keys.map { .string($0) })] }),
            ]
        }
    }
}

/// The nodes of operations and conflicts in lists with `nodes=true` (docs/reference/admin-api.md#fleet).
struct FleetPlaces {
    let data: DataStore
    /// False leaves every document as it is.
    let isAsked: Bool

    /// Reads what other nodes have changed. Call it before the list is read.
    func prepare() async throws {
        if isAsked { try await data.catchUp() }
    }

    /// Adds the nodes to the documents of operations.
    func add(to documents: [JSONValue], of operations: [QueuedWrite]) async throws -> [JSONValue] {
        try await add(to: documents, operations: operations)
    }

    /// Adds the nodes of their operations to the documents of conflicts.
    func add(to documents: [JSONValue], of conflicts: [Conflict]) async throws -> [JSONValue] {
        guard isAsked else { return documents }
        var operations: [QueuedWrite?] = []
        for conflict in conflicts { operations.append(try await data.operation(id: conflict.operation)) }
        return try await add(to: documents, operations: operations)
    }

    private func add(to documents: [JSONValue], operations: [QueuedWrite?]) async throws -> [JSONValue] {
        guard isAsked else { return documents }
        let places = try await data.fleetPlaces(of: operations.compactMap(\.self))
        return zip(documents, operations).map { document, operation in
            var document = document
            let place = operation.flatMap { places[$0.id] }
            document["takenBy"] = .optional(place?.takenBy)
            document["sentBy"] = .optional(place?.sentBy)
            return document
        }
    }
}
