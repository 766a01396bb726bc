// What upstreams' traffic has shown of their resources, kept over restarts (docs/outbox.md#learning).
import GRDB
package import RockpoolCore

extension DataStore {
    /// The beginning of the names under which `cursor` holds it: `shapes:UPSTREAM`. No scope of a pull begins like it: a name of an upstream
    /// holds no colon.
    private static let shapes = "shapes:"

    /// Returns what was learned of each upstream.
    package func learnedShapes() async throws -> [(upstream: String, value: JSONValue)] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT scope, value FROM cursor WHERE scope >= ? AND scope < ? ORDER BY scope",
                arguments: [Self.shapes, Self.shapes + "\u{10FFFF}"])
            return try rows.compactMap { row in
                var columns = RowReader(row)
                let scope: String = try columns.next()
                guard let text = try columns.nextIfAny(String.self), let value = try? JSONValue.parse(Array(text.utf8)) else { return nil }
                return (String(scope.dropFirst(Self.shapes.count)), value)
            }
        }
    }

    /// Stores what was learned of an upstream; nil removes it.
    package func keep(learned value: JSONValue?, upstream: String) async throws {
        let text = value.map { String(decoding: $0.serialized(), as: UTF8.self) }
        try await recorded {
            try await queue.commit(weight: 512 + Int64(text?.utf8.count ?? 0), scope: .own) { db in
                let scope = Self.shapes + upstream
                try db.execute(sql: "DELETE FROM cursor WHERE scope = ?", arguments: [scope])
                guard let text else { return }
                try db.execute(sql: "INSERT INTO cursor (scope, value) VALUES (?, ?)", arguments: [scope, text])
            }
        }
    }
}
