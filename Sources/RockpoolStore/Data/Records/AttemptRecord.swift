// The record of one attempt to send an operation (docs/outbox.md#schema, `attempt`).
import GRDB
import HTTPTypes
package import RockpoolCore

/// The facts recorded about one attempt.
package struct AttemptRecord: Hashable, Sendable {
    /// 1 for the first.
    package var number: Int
    package var startedAt: Timestamp
    /// nil while the attempt is running.
    package var endedAt: Timestamp?
    /// True if the connection was new.
    package var isFreshConnection: Bool?
    package var bytesSent: Int64?
    package var bytesTotal: Int64?
    package var status: Int?
    package var error: String?
    /// How much may have reached the upstream.
    package var sent: TransferFailure.Sent?
    /// True if the operation has been revised since. An operation is revised only when its attempts are known to have had no effect
    /// (docs/outbox.md#keys).
    package var isOfEarlierRevision = false

    /// - Parameters `number`, `startedAt`, `endedAt`: set by the store when it finishes an attempt.
    package init(
        number: Int = 0, startedAt: Timestamp = .distantPast, endedAt: Timestamp? = nil, isFreshConnection: Bool? = nil,
        bytesSent: Int64? = nil, bytesTotal: Int64? = nil, status: Int? = nil, error: String? = nil, sent: TransferFailure.Sent? = nil
    ) {
        self.number = number
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.isFreshConnection = isFreshConnection
        self.bytesSent = bytesSent
        self.bytesTotal = bytesTotal
        self.status = status
        self.error = error
        self.sent = sent
    }

    static let columns = """
        n, started, ended, fresh_conn, bytes_sent, bytes_total, status, error, evidence,
        rev <> (SELECT key_rev FROM op WHERE op.seq = attempt.seq)
        """

    /// The SQL form of `AttemptOutcome.mayStillRun`, next to a row of `op`: the request was sent and no response came, or only a gateway
    /// error that lost the origin. Attempts of earlier revisions are known to have had no effect.
    static let mayStillRun = """
        attempt.rev = op.key_rev AND ended IS NOT NULL AND (status IS NULL AND evidence IN ('maybe', 'yes')
            OR status BETWEEN 500 AND 599 AND status NOT IN (\(AttemptOutcome.effectlessErrors.map(String.init).joined(separator: ", "))))
        """

    init(row: Row) throws {
        var columns = RowReader(row)
        self.init(
            number: try columns.next(), startedAt: Timestamp(milliseconds: try columns.next()),
            endedAt: try columns.nextIfAny(Int64.self).map(Timestamp.init(milliseconds:)), isFreshConnection: try columns.nextIfAny(),
            bytesSent: try columns.nextIfAny(), bytesTotal: try columns.nextIfAny(), status: try columns.nextIfAny(),
            error: try columns.nextIfAny(), sent: try columns.word())
        isOfEarlierRevision = try columns.next()
    }
}

extension AttemptRecord {
    /// Ends the running attempt of an operation with these facts.
    func end(in db: Database, of sequence: Int64, now: Timestamp) throws {
        try db.cachedStatement(
            sql: """
                UPDATE attempt SET ended = ?1, fresh_conn = ?2, bytes_sent = ?3, bytes_total = ?4, status = ?5, error = ?6, evidence = ?7
                WHERE seq = ?8 AND ended IS NULL AND n = (SELECT max(n) FROM attempt WHERE seq = ?8)
                """
        ).run(
            [
                now.milliseconds.databaseValue, isFreshConnection.databaseValue, bytesSent.databaseValue, bytesTotal.databaseValue,
                status.databaseValue, error.databaseValue, (sent?.rawValue).databaseValue, sequence.databaseValue,
            ], in: db)
        // The lifetime of the key starts with the first byte sent: attempts that sent none do not start it (docs/outbox.md#keys).
        guard sent == .no else { return }
        try db.cachedStatement(
            sql: """
                UPDATE op SET first_sent_at = NULL, sent_tick = NULL
                WHERE seq = ?1 AND NOT EXISTS (SELECT 1 FROM attempt
                    WHERE attempt.seq = ?1 AND attempt.rev = op.key_rev AND evidence IS NOT 'no')
                """
        ).execute(arguments: [sequence])
    }

    // A complete operation as JSON: its document with its request, its body and every attempt (docs/outbox.md#export *timeline*, *export*).

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
        var fields = operation.shown(withSecrets: withSecrets).request.fields
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
