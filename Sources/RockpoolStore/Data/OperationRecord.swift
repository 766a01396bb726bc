// An operation whole, as JSON: its document with its request, its body and every attempt (outbox.md §1.13 *timeline*, *export*).
import HTTPTypes
package import RockpoolCore

extension AttemptRecord {
    /// Whether it was sent, and nobody knows what came of it: no answer, or one of a gateway that lost the origin (outbox.md §2.4).
    package var isInDoubt: Bool {
        guard !isOfEarlierRevision, sent != .no, endedAt != nil || sent == .maybe else { return false }
        return status.map { $0 >= 500 && $0 != 503 && $0 != 501 } ?? true
    }

    /// As it stands in `attemptLog`.
    package var json: JSONValue {
        [
            "number": .number(JSONNumber(Int64(number))), "startedAt": .string(RFC3339.format(startedAt)),
            "endedAt": .optional(endedAt.map(RFC3339.format)), "status": status.map { .number(JSONNumber(Int64($0))) } ?? .null,
            "error": .optional(error), "sent": .optional(sent?.rawValue), "bytesSent": bytesSent.map { .number(JSONNumber($0)) } ?? .null,
            "freshConnection": isFreshConnection.map { .bool($0) } ?? .null,
        ]
    }
}

extension DataStore {
    /// Everything kept of an operation but secrets, as one document: a line of an export, and of what is written down at a purge.
    /// - Parameter bodyLimit: bytes; a longer body is left out and only its length said.
    /// - Throws: `.unavailable` when its body cannot be read.
    package func record(of operation: Operation, bodyLimit: Int64 = .max) async throws -> JSONValue {
        let standing = try await standings(of: [operation])[operation.sequence]
        var record = OperationDocument.json(operation, standing: standing)
        let fields = SecretFields.removed(from: operation.request.fields)
        var headers = JSONObject()
        for field in fields {
            let name = field.name.canonicalName
            switch headers[name] {
            case nil: headers[name] = .string(field.value)
            case .array(let values): headers[name] = .array(values + [.string(field.value)])
            case let value?: headers[name] = .array([value, .string(field.value)])
            }
        }
        record["headers"] = .object(headers)
        record["bodyBytes"] = .number(JSONNumber(operation.body.length))
        if operation.body.length <= bodyLimit {
            for (name, value) in OperationBodyJSON.members(try await bytes(of: operation.body), contentType: fields[.contentType]) {
                record[name] = value
            }
        }
        record["attemptLog"] = .array(try await attempts(of: operation).map(\.json))
        return record
    }

    /// A whole body, read off the caller's thread. - Throws: `.unavailable`, `FileError`.
    package func bytes(of body: OperationBody) async throws -> [UInt8] {
        switch try content(of: body) {
        case .bytes(let bytes): bytes
        case let file: try await lanes.run(0) { try file.bytes() }
        }
    }
}
