// Decoding of an operation from its row (docs/outbox.md#schema).
import FoundationEssentials
import GRDB
import HTTPTypes
import RockpoolCore

enum OperationRow {
    static let columns = """
        seq, id, state, reason, method, origin, target, headers, blob_sha, body_len, unsealed(body), upstream, entity, lane, idem_key, key_origin,
        principal, priority, answered_attempts, net_attempts, accepted_at, first_sent_at, next_at, expires_at, ended_at, last_error,
        place, entity_type, entity_id, local_id, base_etag, base_seq, probes, no_merge,
        (SELECT group_concat(needs) FROM op_dep WHERE op_dep.seq = op.seq),
        (SELECT server_id FROM id_map WHERE id_map.local_id = op.local_id),
        (SELECT max(started) FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun)),
        EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = op.seq),
        resp_status, resp_headers, unsealed(resp_body)
        """

    /// The ended states, written as in the partial index `op_lane`: SQLite uses the index only for the same text.
    static let endedStates = OperationState.allCases.filter(\.hasEnded).map { "'\($0.rawValue)'" }.joined(separator: ", ")

    /// The columns with NULL for those that may be large: the bodies of request and response.
    static let lightColumns = columns.replacing("unsealed(body)", with: "NULL")
        .replacing("unsealed(resp_body)", with: "NULL")

    /// - Throws: `UnreadableRow` for a row that does not match the schema.
    static func operation(from row: Row) throws -> Operation {
        var columns = RowReader(row)
        let sequence: Int64 = try columns.next()
        let id: String = try columns.next()
        guard let state = try columns.word(OperationState.self) else { throw UnreadableRow(column: 2) }
        let reason = try columns.word(OperationReason.self)
        let request = try request(&columns)
        let body = try body(&columns)
        var operation = Operation(
            sequence: sequence, id: id, state: state, reason: reason, request: request, body: body, upstream: try columns.next(),
            entity: try columns.nextIfAny(), lane: try columns.next(), idempotencyKey: try columns.next(),
            keyIsClients: try columns.next(String.self) == "client", principal: nil, acceptedAt: .distantPast,
            nextAttemptAt: .distantPast)
        let principal: String = try columns.next()
        operation.principal = principal.isEmpty ? nil : principal
        operation.priority = try columns.next()
        operation.answeredAttempts = try columns.next()
        operation.networkAttempts = try columns.next()
        operation.acceptedAt = Timestamp(milliseconds: try columns.next())
        operation.firstSentAt = try moment(&columns)
        operation.nextAttemptAt = Timestamp(milliseconds: try columns.next())
        operation.expiresAt = try moment(&columns)
        operation.endedAt = try moment(&columns)
        operation.lastError = try columns.nextIfAny()
        try relations(&columns, into: &operation)
        operation.result = try result(&columns)
        return operation
    }

    private static func relations(_ columns: inout RowReader, into operation: inout Operation) throws {
        operation.place = try columns.next()
        operation.collection = try columns.nextIfAny()
        operation.entityID = try columns.nextIfAny()
        operation.localID = try columns.nextIfAny(String.self).flatMap { LocalID($0) }
        operation.baseETag = try columns.nextIfAny()
        operation.baseSequence = try columns.nextIfAny()
        operation.probes = try columns.next()
        operation.noMerge = try columns.next()
        operation.needs = Set(try columns.nextIfAny(String.self)?.split(separator: ",").compactMap { Int64($0) } ?? [])
        operation.serverID = try columns.nextIfAny()
        operation.lostAt = try moment(&columns)
        operation.isUnproved = try columns.next()
    }

    private static func moment(_ columns: inout RowReader) throws -> Timestamp? {
        try columns.nextIfAny(Int64.self).map(Timestamp.init(milliseconds:))
    }

    private static func request(_ columns: inout RowReader) throws -> RequestHead {
        guard let method = HTTPRequest.Method(try columns.next(String.self)), let origin = OriginAddress(url: try columns.next()) else {
            throw UnreadableRow(column: 4)
        }
        let target: String = try columns.next()
        guard let fields = FieldCodec.decode(try columns.next()) else { throw UnreadableRow(column: 7) }
        return RequestHead(method: method, origin: origin, target: target, fields: fields)
    }

    private static func body(_ columns: inout RowReader) throws -> OperationBody {
        let sha: Data? = try columns.nextIfAny()
        let length: Int64 = try columns.next()
        let inline: Data? = try columns.nextIfAny()
        if let sha { return .blob(sha256: Digest.hex(sha), length: length) }
        return inline.map { .inline(Array($0)) } ?? .none
    }

    private static func result(_ columns: inout RowReader) throws -> OperationResult? {
        guard let status: Int = try columns.nextIfAny() else { return nil }
        guard let fields = FieldCodec.decode(try columns.next()) else { throw UnreadableRow(column: 39) }
        let body: Data? = try columns.nextIfAny()
        return OperationResult(head: ResponseHead(status: status, fields: fields), body: body.map { Array($0) } ?? [])
    }
}

extension OriginAddress {
    /// Parses the text produced by `url`; nil for any other text.
    fileprivate init?(url: String) {
        guard let scheme = [Scheme.https, .http].first(where: { url.hasPrefix("\($0.rawValue)://") }) else { return nil }
        let authority = url.dropFirst(scheme.rawValue.utf8.count + 3)
        let end = authority.lastIndex(of: "]").map { authority.index(after: $0) }
        let hostEnd = end ?? authority.firstIndex(of: ":") ?? authority.endIndex
        let host = authority[..<hostEnd].drop { $0 == "[" }.prefix { $0 != "]" }
        let port = authority[hostEnd...].dropFirst()
        guard !host.isEmpty, port.isEmpty || Int(port) != nil else { return nil }
        self.init(scheme: scheme, host: String(host), port: Int(port))
    }
}
