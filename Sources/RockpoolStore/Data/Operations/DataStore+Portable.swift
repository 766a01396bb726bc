// What an export has of an operation, so that another outbox can take it in (docs/outbox.md#import).
import Crypto
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

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
            var row = try Self.portable(found, withSecrets: withSecrets, in: db)
            row["target"] = operation.request.target.databaseValue
            let plain = WriteFingerprint(operation.request).of(body)
            if let name = Data.fromDatabaseValue(row["fingerprint"]), self.seal.isName(Array(name), of: plain) {
                row["fingerprint"] = plain.data.databaseValue
            }
            let related = try PortableTable.all.flatMap { table in
                try Row.fetchAll(db, sql: table.selection, arguments: number).map { found in
                    var row = try Self.portable(found, withSecrets: withSecrets, in: db)
                    let own = table.name == "conflict" ? ["seq", "n"] : ["seq"]
                    row.values.removeAll { own.contains($0.name) }
                    return PortableOperation.Related(table: table.name, row: row)
                }
            }
            return PortableOperation(id: operation.id, row: row, body: body, related: related, keyMark: mark)
        }
    }

    /// A row with ids in the place of numbers, and without what no export has.
    private static func portable(_ found: Row, withSecrets: Bool, in db: Database) throws -> RowBytes {
        var row = RowBytes(zip(found.columnNames, found.databaseValues).map { (name: $0, value: $1) })
        for (name, value) in row.values where !value.isNull {
            if PortableTable.naming.contains(name) {
                // Empty for one that is gone.
                row[name] = (try String.fetchOne(db, sql: "SELECT id FROM op WHERE seq = ?", arguments: [value]) ?? "").databaseValue
            }
            if name.hasSuffix("headers"), var fields = Data.fromDatabaseValue(value).flatMap({ FieldCodec.decode($0) }) {
                fields = SecretFields.removed(from: fields)
                if !withSecrets, let location = fields[.location] { fields[.location] = SecretParameters.redacted(url: location) }
                row[name] = FieldCodec.encode(fields).databaseValue
            }
            if !withSecrets, name.hasSuffix("url"), let url = String.fromDatabaseValue(value) {
                row[name] = SecretParameters.redacted(url: url).databaseValue
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
