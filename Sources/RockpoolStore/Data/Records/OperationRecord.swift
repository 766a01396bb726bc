// A complete operation as JSON: its document with its request, its body and every attempt (docs/outbox.md#export *timeline*, *export*).
import HTTPTypes
package import RockpoolCore

extension AttemptRecord {
    /// `AttemptOutcome.mayStillRun` of an ended attempt: it was sent and got no response, or only one from a gateway that lost the origin
    /// (docs/outbox.md#evidence).
    package var isInDoubt: Bool {
        guard !isOfEarlierRevision, endedAt != nil else { return false }
        return status.map(AttemptOutcome.mayStillRun(answered:)) ?? (sent == .maybe || sent == .yes)
    }

    /// The attempt as a member of `attemptLog`.
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
    /// Returns everything stored about an operation except secrets, as one document: a line of an export or of the file of purged
    /// operations.
    /// - Parameters:
    ///   - bodyLimit: maximum bytes of an included body; for a longer one only the length is given.
    ///   - withSecrets: true for the secrets of its URLs.
    /// - Throws: `DamagedBody`, `FileError` when its body cannot be read.
    package func record(of operation: QueuedWrite, bodyLimit: Int64 = .max, withSecrets: Bool = false) async throws -> JSONValue {
        let standing = try await standings(of: [operation], rules: LaneRules(now: clock()))[operation.sequence]
        var record = OperationDocument.json(of: operation, standing: standing, withSecrets: withSecrets)
        var fields = SecretFields.removed(from: operation.request.fields)
        // It is the member `repeats`.
        fields[.rockpoolRepeat] = nil
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
            for (name, value) in OperationBodyJSON.members(of: try await bytes(of: operation.body), contentType: fields[.contentType]) {
                record[name] = value
            }
        }
        record["attemptLog"] = .array(try await attempts(of: operation).map(\.json))
        return record
    }

    /// Reads a whole body off the caller's thread. - Throws: `DamagedBody`, `FileError`.
    package func bytes(of body: OperationBody) async throws -> [UInt8] {
        switch try content(of: body) {
        case .bytes(let bytes): bytes
        case let file: try await lanes.run(0) { try file.bytes() }
        }
    }
}
