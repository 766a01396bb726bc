// The nodes of operations and conflicts in lists with `nodes=true` (docs/reference/admin-api.md#fleet).
import RockpoolCore
import RockpoolStore

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
