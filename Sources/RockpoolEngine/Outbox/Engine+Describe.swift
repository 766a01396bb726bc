// Operations as documents: with what they wait for, what holds them, and when they go (docs/outbox.md#waiting;
// docs/reference/admin-api.md#operation-document).
import HTTPTypes
package import RockpoolCore
import RockpoolStore

extension Engine {
    /// Bytes of a body that the document of one operation shows; exports show it whole.
    package static let shownBodyLimit: Int64 = 1 << 20

    /// The documents of a list, in its order.
    package func documents(of operations: [Operation]) async throws -> [JSONValue] {
        let standings = try await data.standings(of: operations)
        return operations.map { operation in
            let standing = standings[operation.sequence] ?? OperationStanding()
            return described(OperationDocument.json(operation, standing: standing), operation, standing)
        }
    }

    /// The document of one operation, with its request, its body, every attempt, and the conflict that waits for a person.
    package func document(of operation: Operation) async throws -> JSONValue {
        let standing = try await data.standings(of: [operation])[operation.sequence] ?? OperationStanding()
        var document = described(try await data.record(of: operation, bodyLimit: Self.shownBodyLimit), operation, standing)
        document["conflict"] = .optional(operation.state == .conflicted ? try await data.openConflict(of: operation.sequence)?.id : nil)
        return document
    }

    /// The same for the client that wrote it: what it waits for in words, nothing of others.
    func statusDocument(of operation: Operation) async throws -> JSONValue {
        let standing = try await data.standings(of: [operation])[operation.sequence] ?? OperationStanding()
        var document = OperationDocument.json(operation, standing: standing)
        document["waiting"] = .optional(waiting(operation, standing)?.words)
        return document
    }

    private func described(_ json: JSONValue, _ operation: Operation, _ standing: OperationStanding) -> JSONValue {
        var json = json
        json["waiting"] = .optional(waiting(operation, standing)?.words)
        json["blockedBy"] = operation.state == .pending ? standing.blocker?.json ?? .null : .null
        let purge = standing.isAwaited ? nil : retention.announcedPurge(of: operation, now: now())
        json["purgeAt"] = .optional(purge.map(RFC3339.format))
        return json
    }

    private func waiting(_ operation: Operation, _ standing: OperationStanding) -> WaitReason? {
        WaitReason(operation, standing: standing, reachability: reachability.machine(of: operation.upstream), now: now())
    }

    /// How long operations are kept here.
    package var retention: Retention { Retention(configuration.cleanup) }
}
