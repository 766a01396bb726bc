// Takes operations of an export into this outbox (docs/outbox.md#import).
import FoundationEssentials
import GRDB
import NIOCore
package import RockpoolCore

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

    // MARK: a client's key

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
        try checkURL()
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
        let forms = table == "op" ? Dictionary(uniqueKeysWithValues: OperationColumn.table.map { ($0.name, $0.given) }) : [:]
        // A newer version has columns that this one does not know: without a value they mean nothing here.
        let values = row.values.filter { !$0.value.isNull && computed[$0.name] == nil }
        if let unknown = values.first(where: { !known.contains($0.name) }) {
            throw Fault(id: id, why: "it was exported by a newer version: \(table).\(unknown.name) is not known here")
        }
        let marks = values.map { PortableTable.naming.contains($0.name) ? PortableTable.number(in: $0.name) : forms[$0.name] ?? "?" }
        let others = computed.sorted { $0.key < $1.key }
        // What a local id or a need means is there already.
        let verb = ["id_map", "op_dep"].contains(table) ? "INSERT OR IGNORE" : "INSERT"
        try db.execute(
            sql: """
                \(verb) INTO \(table) (\((values.map(\.name) + others.map(\.key)).joined(separator: ", ")))
                    VALUES (\((marks + others.map(\.value)).joined(separator: ", ")))
                """, arguments: StatementArguments(values.map(\.value)))
    }

    /// An open operation needs its URL.
    private func checkURL() throws {
        guard let target = String.fromDatabaseValue(row["target"]),
            let state = String.fromDatabaseValue(row["state"]).flatMap(OperationState.init), !state.hasEnded,
            SecretParameters.occur(in: target), SecretParameters.redacted(url: target) == target
        else { return }
        throw Fault(id: id, why: "the secrets of its URL are REDACTED: export it with --with-secrets")
    }

    private func checkNeed(_ id: DatabaseValue, in db: Database) throws {
        guard try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM op WHERE id = ?)", arguments: [id]) == true else {
            let name = String.fromDatabaseValue(id) ?? "an operation"
            throw Fault(id: self.id, why: "it needs \(name), which is not in the outbox: export without --state, --lane")
        }
    }
}
