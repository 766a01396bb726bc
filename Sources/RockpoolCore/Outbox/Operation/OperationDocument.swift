// The JSON document of an operation, shared by clients, the admin API and the command line
// (docs/reference/admin-api.md#operation-document).
import HTTPTypes

/// Writes operations as JSON. Field values with secrets were never stored, so none can appear here.
package enum OperationDocument {
    /// - Parameters:
    ///   - standing: nil where it is not known: then members about other operations are empty.
    ///   - withSecrets: true for the secrets of its URLs, which are `REDACTED` otherwise.
    package static func json(
        of operation: QueuedWrite, standing: OperationRelations? = nil, withSecrets: Bool = false
    ) -> JSONValue {
        let operation = withSecrets ? operation : operation.redacted
        return [
            "id": .string(operation.id),
            "state": .string(operation.state.rawValue),
            "reason": .optional(operation.reason?.rawValue),
            "method": .string(operation.request.method.rawValue),
            "url": .string(operation.request.url),
            "upstream": .string(operation.upstream),
            "entity": .optional(operation.entity),
            "lane": .string(operation.lane),
            "idempotencyKey": .string(operation.idempotencyKey),
            "attempts": .number(JSONNumber(Int64(operation.answeredAttempts + operation.networkAttempts))),
            "acceptedAt": .string(RFC3339.format(operation.acceptedAt)),
            "nextAttemptAt": operation.state == .pending || operation.state == .uncertain
                ? .string(RFC3339.format(operation.nextAttemptAt)) : .null,
            "expiresAt": .optional(operation.expiresAt.map(RFC3339.format)),
            "endedAt": .optional(operation.endedAt.map(RFC3339.format)),
            "lastError": .optional(operation.lastError),
            "priority": .number(JSONNumber(Int64(operation.priority))),
            "repeats": .number(JSONNumber(Int64(operation.repeats))),
            "dependsOn": .array(standing?.dependsOn.map { .string($0.id) } ?? []),
            "supersededBy": .optional(standing?.supersededBy),
            "fixes": .optional(standing?.fixes),
            "localId": .optional(operation.localID?.text),
            "serverId": .optional(operation.serverID),
            "seen": operation.baseSeen?.json ?? .null,
            "result": operation.result.map(result) ?? .null,
            "links": ["self": .string(operation.statusPath)],
        ]
    }

    private static func result(of result: OperationResult) -> JSONValue {
        let fields = result.head.fields.map { field in (field.name.canonicalName, JSONValue.string(field.value)) }
        return [
            "status": .number(JSONNumber(Int64(result.head.status))),
            "headers": .object(JSONObject(fields)),
            "body": body(of: result.body),
        ]
    }

    /// Returns JSON embedded and other text as a string; null for bytes that are neither.
    static func body(of bytes: [UInt8]) -> JSONValue {
        if bytes.isEmpty { return .null }
        if let value = try? JSONValue.parse(bytes) { return value }
        return String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .null
    }
}

extension QueuedWrite {
    /// The path prefix of status documents, on every authority.
    package static let statusPrefix = "/.well-known/rockpool/operations/"
    /// The path of its status document.
    package var statusPath: String { Self.statusPrefix + id }
    /// The id of the operation whose status document `target` names; nil for any other target.
    package static func statusID(in target: String) -> String? {
        target.hasPrefix(statusPrefix) ? String(target.dropFirst(statusPrefix.count).prefix { $0 != "?" }) : nil
    }
}
