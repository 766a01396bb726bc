// JSON documents of operations: the reason for which each one waits, its blocker and its purge date (docs/outbox.md#waiting;
// docs/reference/admin-api.md#operation-document).
import HTTPTypes
package import RockpoolCore
import RockpoolStore

extension OperationDocuments {
    /// The maximum number of body bytes in the document of one operation; exports contain the whole body.
    package static let shownBodyLimit: Int64 = .mib(1)

    /// Returns the documents of `operations`, in the same order.
    package func documents(of operations: [QueuedWrite]) async throws -> [JSONValue] {
        let standings = try await data.standings(of: operations, rules: rules)
        return operations.map { operation in
            let standing = standings[operation.sequence] ?? OperationRelations()
            return described(OperationDocument.json(of: operation, standing: standing), operation: operation, standing: standing)
        }
    }

    /// Returns the document of one operation with its request, its body, every attempt, and its open conflict.
    package func document(of operation: QueuedWrite) async throws -> JSONValue {
        let standing = try await data.standings(of: [operation], rules: rules)[operation.sequence] ?? OperationRelations()
        var document = described(
            try await data.record(of: operation, bodyLimit: Self.shownBodyLimit), operation: operation, standing: standing)
        document["conflict"] = .optional(operation.state == .conflicted ? try await data.openConflict(of: operation.sequence)?.id : nil)
        return document
    }

    /// Returns the document for the client that sent the write, with the reason for waiting in words and without data of other operations.
    func statusDocument(of operation: QueuedWrite) async throws -> JSONValue {
        let standing = try await data.standings(of: [operation], rules: rules)[operation.sequence] ?? OperationRelations()
        var document = OperationDocument.json(of: operation, standing: standing)
        document["waiting"] = .optional(waiting(operation, standing: standing)?.words)
        return document
    }

    private var rules: LaneRules {
        LaneRules(routes: active.routes, now: now()) { [credentials] in credentials.isProved($0) }
    }

    private func described(_ json: JSONValue, operation: QueuedWrite, standing: OperationRelations) -> JSONValue {
        var json = json
        json["waiting"] = .optional(waiting(operation, standing: standing)?.words)
        json["blockedBy"] = operation.state == .pending ? standing.blocker?.json ?? .null : .null
        let purge = standing.isAwaited ? nil : active.retention.announcedPurge(of: operation, now: now())
        json["client"] = .optional(operation.principal.map(credentials.resolved))
        json["userAgent"] = .optional(operation.request.fields[.userAgent])
        json["bodyBytes"] = .number(JSONNumber(operation.body.length + operation.unreadBodyBytes))
        json["purgeAt"] = .optional(purge.map(RFC3339.format))
        json["commands"] = .array(OperationSteering.allowed(on: operation).map { .string($0.rawValue) })
        return json
    }

    private func waiting(_ operation: QueuedWrite, standing: OperationRelations) -> WaitReason? {
        let held = laneHolds.end(
            upstream: operation.upstream, lane: operation.lane, forProved: credentials.isProved(operation.principal), now: now())
        return WaitReason(
            operation, standing: standing, reachability: reachability.machine(of: operation.upstream), heldUntil: held,
            pause: pauses.pause(of: active.summary(of: operation)), unread: active.unread, now: now())
    }
}
