// An operation as a line of an export that another outbox can take in, under the same id (docs/outbox.md#import).
import Crypto
import FoundationEssentials
import GRDB
import HTTPTypes
import NIOCore
package import RockpoolCore

/// The rows of one operation, with the ids of other operations in the place of their numbers.
package struct PortableOperation: Sendable {
    /// A line that is no operation of an export, or one that cannot be taken in.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        /// The operation's id; nil where it is not known.
        package var id: String?
        package var why: String

        package init(id: String? = nil, why: String) { (self.id, self.why) = (id, why) }

        package var description: String { [id, why].compactMap(\.self).joined(separator: ": ") }
    }

    /// A row of another table that belongs to the operation.
    struct Related: Sendable {
        let table: String
        let row: RowBytes
    }

    package let id: String
    /// The row of `op` without its body.
    var row: RowBytes
    let body: [UInt8]
    let related: [Related]
    /// Names the secret after which its principal is called.
    let keyMark: String

    /// Its place among the operations of the outbox that it comes from, by which an import orders them.
    package static func order(of line: JSONValue) -> (place: Int64, sequence: Int64)? {
        guard line["id"]?.string != nil, let numbers = line["row"]?["order"]?.array, numbers.count == 2,
            let place = numbers[0].integer, let sequence = numbers[1].integer
        else { return nil }
        return (place, sequence)
    }

    /// - Throws: `Fault` for a line that no export has written.
    package init(_ line: JSONValue) throws(Fault) {
        guard let id = line["id"]?.string, let member = line["row"], let row = Self.row(member["op"]), row["id"] == id.databaseValue,
            let members = member["related"]?.array, let keyMark = member["key"]?.string
        else { throw Fault(id: line["id"]?.string, why: "this is no operation of rockpool outbox export --format jsonl") }
        self.id = id
        self.row = row
        self.keyMark = keyMark
        body = try Self.body(of: line, type: String.fromDatabaseValue(row["content_type"]), id: id)
        related = try members.map { member throws(Fault) in
            guard let table = member["table"]?.string, PortableTable.all.contains(where: { $0.name == table }),
                let row = Self.row(member["row"])
            else { throw Fault(id: id, why: "it has a row that this version does not know") }
            return Related(table: table, row: row)
        }
        guard Int64.fromDatabaseValue(row["body_len"]) == Int64(body.count) else { throw Fault(id: id, why: "its body is not whole") }
    }

    /// `bodyBase64` has the exact bytes.
    private static func body(of line: JSONValue, type: String?, id: String) throws(Fault) -> [UInt8] {
        guard let text = line["bodyBase64"]?.string else { return OperationBodyJSON.bytes(of: line["body"] ?? .null, contentType: type) }
        guard let bytes = Base64.decode(text) else { throw Fault(id: id, why: "bodyBase64 is no base64") }
        return bytes
    }

    private static func row(_ member: JSONValue?) -> RowBytes? { member?.string.flatMap(Base64.decode).flatMap { RowBytes($0) } }

    init(id: String, row: RowBytes, body: [UInt8], related: [Related], keyMark: String) {
        (self.id, self.row, self.body, self.related, self.keyMark) = (id, row, body, related, keyMark)
    }

    /// The member `row` of its line.
    func json(place: Int64, sequence: Int64) -> JSONValue {
        [
            "order": [.number(JSONNumber(place)), .number(JSONNumber(sequence))], "key": .string(keyMark),
            "op": .string(Base64.encode(row.encoded)),
            "related": .array(related.map { ["table": .string($0.table), "row": .string(Base64.encode($0.row.encoded))] }),
        ]
    }

    /// Bytes of its rows.
    var length: Int64 { Int64(body.count + row.encoded.count + related.reduce(0) { $0 + $1.row.encoded.count }) }
}

/// A table with rows of operations, in the order in which they are taken in.
struct PortableTable: Sendable {
    let name: String
    /// Selects the rows of the operation `?1`, with the secrets of URLs sealed.
    let selection: String

    /// How a column of one of these tables, or of `op`, is stored.
    static func form(of column: String, in table: String) -> OperationColumn.Form {
        guard table == "op" else { return column.hasSuffix("url") ? .sealedURL : .plain }
        return OperationColumn.table.first { $0.name == column }?.form ?? .plain
    }

    static let all = [
        PortableTable(
            name: "snapshot",
            selection: """
                SELECT sha, etag, content_type, unsealed(body) AS body FROM snapshot WHERE sha IN (
                    SELECT base_sha FROM op WHERE seq = ?1 UNION SELECT base_sha FROM conflict WHERE seq = ?1
                    UNION SELECT mine_sha FROM conflict WHERE seq = ?1 UNION SELECT theirs_sha FROM conflict WHERE seq = ?1
                    UNION SELECT result_sha FROM conflict WHERE seq = ?1)
                """),
        PortableTable(name: "attempt", selection: "SELECT * FROM attempt WHERE seq = ?1 ORDER BY n"),
        PortableTable(name: "unproved", selection: "SELECT * FROM unproved WHERE seq = ?1"),
        PortableTable(name: "op_ref", selection: "SELECT * FROM op_ref WHERE seq = ?1"),
        PortableTable(
            name: "id_map",
            selection: """
                SELECT * FROM id_map WHERE local_id IN (
                    SELECT local_id FROM op WHERE seq = ?1 UNION SELECT local_id FROM op_ref WHERE seq = ?1)
                """),
        PortableTable(name: "conflict", selection: "SELECT * FROM conflict WHERE seq = ?1 ORDER BY n"),
        PortableTable(
            name: "op_dep",
            selection: """
                SELECT op_dep.* FROM op_dep JOIN op AS needed ON needed.seq = op_dep.needs
                    WHERE op_dep.seq = ?1 AND \(OperationState.isOpen("needed"))
                """),
    ]

    /// The columns that name an operation by its number, other than the one that a row belongs to.
    static let naming: Set<String> = ReplicatedTable.references.union(["needs", "created_by"])
    /// The columns that name a snapshot.
    static let snapshots: Set<String> = ["base_sha", "mine_sha", "theirs_sha", "result_sha"]

    /// The value of a column that names an operation by its id: of one that was replaced, what has replaced it.
    static func number(in column: String) -> String {
        switch column {
        case "needs": "(SELECT coalesce(superseded_by, seq) FROM op WHERE id = ?)"
        case "created_by": "coalesce((SELECT seq FROM op WHERE id = ?), 0)"
        default: "(SELECT seq FROM op WHERE id = ?)"
        }
    }
}

// MARK: - Export

// What an export has of an operation, so that another outbox can take it in (docs/outbox.md#import).
extension DataStore {
    /// Returns the line of an export: the record of an operation, and its rows.
    /// - Parameter operation: with the URLs that the line may show.
    /// - Throws: as `record`.
    package func line(of operation: QueuedWrite, withSecrets: Bool) async throws -> JSONValue {
        var line = try await record(of: operation, withSecrets: withSecrets)
        let body = try await bytes(of: operation.body)
        let type = operation.request.fields[.contentType]
        // JSON is shown as a value: its spelling may be another.
        if line["bodyBase64"] == nil, OperationBodyJSON.bytes(of: line["body"] ?? .null, contentType: type) != body {
            line["bodyBase64"] = .string(Base64.encode(body))
        }
        line["row"] = try await portable(operation, body: body, withSecrets: withSecrets)?
            .json(place: operation.place, sequence: operation.sequence)
        return line
    }

    /// - Returns: nil if the operation is gone.
    private func portable(_ operation: QueuedWrite, body: [UInt8], withSecrets: Bool) async throws -> PortableOperation? {
        let mark = Self.mark(of: installKey)
        return try await reading { db in
            let columns = try PortableOperation.columns(in: db).map { "\($0.selected) AS \($0.name)" }.joined(separator: ", ")
            let number: StatementArguments = [operation.sequence]
            guard let found = try Row.fetchOne(db, sql: "SELECT \(columns) FROM op WHERE seq = ?", arguments: number) else { return nil }
            var row = try self.portable(found, withSecrets: withSecrets, in: db)
            row["target"] = operation.request.target.databaseValue
            let plain = WriteFingerprint(operation.request).of(body)
            if let name = Data.fromDatabaseValue(row["fingerprint"]), self.seal.isName(Array(name), of: plain) {
                row["fingerprint"] = plain.data.databaseValue
            }
            let related = try PortableTable.all.flatMap { table in
                try Row.fetchAll(db, sql: table.selection, arguments: number).map { found in
                    var row = try self.portable(found, withSecrets: withSecrets, in: db)
                    let own = table.name == "conflict" ? ["seq", "n"] : ["seq"]
                    row.values.removeAll { own.contains($0.name) }
                    return PortableOperation.Related(table: table.name, row: row)
                }
            }
            return PortableOperation(id: operation.id, row: row, body: body, related: related, keyMark: mark)
        }
    }

    /// A row with ids in the place of numbers, and without what no export has.
    private func portable(_ found: Row, withSecrets: Bool, in db: Database) throws -> RowBytes {
        var row = RowBytes(zip(found.columnNames, found.databaseValues).map { (name: $0, value: $1) })
        for (name, value) in row.values where !value.isNull {
            if PortableTable.naming.contains(name) {
                // Empty for one that is gone.
                row[name] = (try String.fetchOne(db, sql: "SELECT id FROM op WHERE seq = ?", arguments: [value]) ?? "").databaseValue
            }
            if name.hasSuffix("headers"), let fields = Data.fromDatabaseValue(value).flatMap({ FieldCodec.decode($0) }) {
                row[name] = FieldCodec.encode(SecretFields.shown(fields, withSecrets: withSecrets)).databaseValue
            }
            if name.hasSuffix("url"), let stored = String.fromDatabaseValue(value) {
                let url = seal.opened(url: stored)
                row[name] = (withSecrets ? url : SecretParameters.redacted(url: url)).databaseValue
            }
        }
        return row
    }
}

extension PortableOperation {
    /// The columns of `op` that an export has: not the numbers, which another outbox gives anew, and not the body, which stands beside the row.
    static func columns(in db: Database) throws -> [OperationColumn] {
        let known = Dictionary(uniqueKeysWithValues: OperationColumn.table.map { ($0.name, $0) })
        return try db.columns(in: "op").map(\.name).filter { !["seq", "place", "body", "blob_sha"].contains($0) }
            .map { known[$0] ?? OperationColumn($0) }
    }
}

// MARK: - Import
// Takes operations of an export into this outbox (docs/outbox.md#import).

/// What a part of an export has brought.
package struct TakenIn: Sendable {
    /// The operations that are in the outbox now, and were not before.
    package var operations: [QueuedWrite] = []
    /// The number of those that were there already.
    package var there = 0
    /// Of `operations`: those that another write has the client's key of, so that they are not sent.
    package var repeated = 0
    /// Of `operations`: open writes of clients that are named after another `install-key`.
    package var strangers = 0
}

extension DataStore {
    /// Takes in operations, in this order, in one transaction. One whose id is there is left alone.
    /// - Throws: `PortableOperation.Fault`; as `append`. Nothing has changed then.
    package func takeIn(_ operations: [PortableOperation]) async throws -> TakenIn {
        let now = clock()
        let new = try await reading { db in
            try operations.filter { try !Self.isThere($0.id, in: db) }
        }
        var bodies: [String: OperationBody] = [:]
        do {
            for operation in new { bodies[operation.id] = try await keep(operation.body) }
            let cost = Cost.row(new.reduce(0) { $0 + $1.length })
            defer { empty.noteTaken() }
            let taken = try await translated {
                try await queue.commit(weight: cost / 2, adding: bodies.values.lazy.compactMap(\.blobHash).first) { [bodies] db in
                    try self.checkRoom(in: db, for: cost)
                    var taken = TakenIn(there: operations.count - new.count)
                    for operation in new { try self.takeIn(operation, bodies[operation.id] ?? .none, to: &taken, in: db, now: now) }
                    return taken
                }
            }
            for case .blob(let name, _) in bodies.values { releaseBlob(name) }
            for operation in taken.operations {
                if let id = operation.localID { localIDs.note(id, upstream: operation.upstream, collection: operation.collection) }
            }
            return taken
        } catch {
            bodies.values.forEach(discard)
            throw error
        }
    }

    private func keep(_ bytes: [UInt8]) async throws -> OperationBody {
        guard bytes.count > Self.inlineLimit else { return bytes.isEmpty ? .none : .inline(bytes) }
        let writer = try await blobWriter(expectedLength: Int64(bytes.count))
        try await writer.append(ByteBuffer(bytes: bytes))
        return try await writer.finish()
    }

    private static func isThere(_ id: String, in db: Database) throws -> Bool {
        try Bool.fetchOne(db.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM op WHERE id = ?)"), arguments: [id]) ?? false
    }

    private func takeIn(
        _ operation: PortableOperation, _ body: OperationBody, to taken: inout TakenIn, in db: Database, now: Timestamp
    ) throws {
        // Twice in the export, or another node has brought it meanwhile.
        if try Self.isThere(operation.id, in: db) { return taken.there += 1 }
        do {
            try attachBlob(of: body, in: db)
            let rival = try Self.rival(of: operation.row, in: db)
            let sequence = try operation.insert(body, keepsKey: rival == nil, in: db)
            if operation.row["state"] == OperationState.inflight.rawValue.databaseValue {
                try Self.abandon([sequence], in: db, now: now)
            }
            if let rival, try giveWay(sequence, to: rival, operation.row, in: db, now: now) { taken.repeated += 1 }
            try Self.log(in: db, sequence: sequence, event: "imported", detail: nil, now: now)
            guard let made = try Self.fetch(in: db, where: "seq = ?", [sequence]) else { return }
            taken.operations.append(made)
            if !made.state.hasEnded, made.principal != nil, operation.keyMark != Self.mark(of: installKey) { taken.strangers += 1 }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            throw PortableOperation.Fault(id: operation.id, why: error.message ?? "the schema refuses it")
        } catch let error as UnreadableRow {
            throw PortableOperation.Fault(id: operation.id, why: "\(error)")
        }
    }

    // MARK: - A client's key

    /// Returns the operation that has the client's key already.
    private static func rival(of row: RowBytes, in db: Database) throws -> Int64? {
        try Int64.fetchOne(
            db, sql: "SELECT seq FROM op WHERE principal = ? AND client_key = ?", arguments: [row["principal"], row["client_key"]])
    }

    /// Of two equal writes under one key of a client, the one that is taken in is not sent.
    /// - Returns: false if they are not equal, or it has ended.
    private func giveWay(_ sequence: Int64, to rival: Int64, _ row: RowBytes, in db: Database, now: Timestamp) throws -> Bool {
        let facts = try Row.fetchOne(
            db, sql: "SELECT fingerprint, (SELECT state FROM op WHERE seq = ?2) FROM op WHERE seq = ?1", arguments: [rival, sequence])
        guard let facts, let name = Data.fromDatabaseValue(facts[0]), let plain = Data.fromDatabaseValue(row["fingerprint"]),
            name == plain || seal.isName(Array(name), of: Array(plain)),
            let state = String.fromDatabaseValue(facts[1]).flatMap(OperationState.init),
            OperationMachine.permits(from: state, to: .superseded)
        else { return false }
        try Self.transition(
            in: db, sequence: sequence, from: state, to: .superseded, reason: .squashed, detail: "its client's key names another write",
            update: .replaced, values: [rival.databaseValue], now: now)
        return true
    }
}

extension PortableOperation {
    /// Inserts its rows.
    /// - Parameter keepsKey: false if the client's key names another operation.
    /// - Returns: its number. - Throws: `Fault`, the error of SQLite.
    fileprivate func insert(_ body: OperationBody, keepsKey: Bool, in db: Database) throws -> Int64 {
        let snapshots = try related.filter { $0.table == "snapshot" }.map { (name: $0.row["sha"], new: try Self.pin($0.row, in: db)) }
        func renamed(_ row: RowBytes) -> RowBytes {
            RowBytes(
                row.values.map { name, value in
                    guard PortableTable.snapshots.contains(name) else { return (name, value) }
                    return (name, snapshots.first { $0.name == value }?.new ?? .null)
                })
        }
        try checkSecrets()
        var own = renamed(row)
        if !keepsKey { own["client_key"] = .null }
        own["body"] = body.inlineData?.databaseValue ?? .null
        own["blob_sha"] = body.blobHash?.databaseValue ?? .null
        let places = ["seq": NextNumber.sql(of: "op"), "place": NextNumber.sql(of: "op")]
        try insert(own, into: "op", computed: places, in: db)
        let sequence = db.lastInsertedRowID
        for other in related where other.table != "snapshot" {
            if other.table == "op_dep" { try checkNeed(other.row["needs"], in: db) }
            let number = other.table == "conflict" ? ["n": NextNumber.sql(of: "conflict")] : [:]
            let owner = other.table == "id_map" ? [:] : ["seq": "\(sequence)"]
            try insert(renamed(other.row), into: other.table, computed: owner.merging(number) { $1 }, in: db)
        }
        return sequence
    }

    private static func pin(_ row: RowBytes, in db: Database) throws -> DatabaseValue {
        let side = Conflict.Side(
            body: Array(Data.fromDatabaseValue(row["body"]) ?? Data()), contentType: String.fromDatabaseValue(row["content_type"]),
            etag: String.fromDatabaseValue(row["etag"]))
        return try side.pin(in: db).databaseValue
    }

    /// - Parameter computed: the SQL of further columns.
    private func insert(_ row: RowBytes, into table: String, computed: [String: String], in db: Database) throws {
        let known = try Set(db.columns(in: table).map(\.name))
        // A newer version has columns that this one does not know: without a value they mean nothing here.
        let values = row.values.filter { !$0.value.isNull && computed[$0.name] == nil }
        if let unknown = values.first(where: { !known.contains($0.name) }) {
            throw Fault(id: id, why: "it was exported by a newer version: \(table).\(unknown.name) is not known here")
        }
        let marks = values.map { name, _ in
            PortableTable.naming.contains(name) ? PortableTable.number(in: name) : PortableTable.form(of: name, in: table).given
        }
        let others = computed.sorted { $0.key < $1.key }
        // What a local id or a need means is there already.
        let verb = ["id_map", "op_dep"].contains(table) ? "INSERT OR IGNORE" : "INSERT"
        try db.execute(
            sql: """
                \(verb) INTO \(table) (\((values.map(\.name) + others.map(\.key)).joined(separator: ", ")))
                    VALUES (\((marks + others.map(\.value)).joined(separator: ", ")))
                """, arguments: StatementArguments(values.map(\.value)))
    }

    /// An open operation needs the secrets of its URLs.
    private func checkSecrets() throws {
        let fields = Data.fromDatabaseValue(row["headers"]).flatMap { FieldCodec.decode($0) } ?? [:]
        let texts = [Array((String.fromDatabaseValue(row["target"]) ?? "").utf8)] + fields.map(\.valueBytes)
        guard let state = String.fromDatabaseValue(row["state"]).flatMap(OperationState.init), !state.hasEnded,
            texts.contains(where: SecretParameters.areHidden)
        else { return }
        throw Fault(id: id, why: "the secrets of its URLs are REDACTED: export it with --with-secrets")
    }

    private func checkNeed(_ id: DatabaseValue, in db: Database) throws {
        guard try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM op WHERE id = ?)", arguments: [id]) == true else {
            let name = String.fromDatabaseValue(id) ?? "an operation"
            throw Fault(id: self.id, why: "it needs \(name), which is not in the outbox: export without --state, --lane")
        }
    }
}
