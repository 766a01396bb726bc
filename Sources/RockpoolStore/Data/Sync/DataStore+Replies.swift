// What upstreams answer to writes, kept over restarts (docs/outbox.md#replies).
import GRDB
package import RockpoolCore

extension DataStore {
    /// The beginning of the names under which `cursor` holds them: `reply:UPSTREAM METHOD PLACE`. No scope of a pull begins like it: a name of
    /// an upstream holds no colon.
    private static let replies = "reply:"

    /// Returns the stored forms, by upstream.
    package func learnedReplies() async throws -> [(upstream: String, route: WriteRoute, form: AnswerForm)] {
        try await reading { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT scope, value FROM cursor WHERE scope >= ? AND scope < ? ORDER BY scope",
                arguments: [Self.replies, Self.replies + "\u{10FFFF}"])
            return try rows.compactMap { row in
                var columns = RowReader(row)
                let scope: String = try columns.next()
                let parts = scope.dropFirst(Self.replies.count).split(separator: " ", maxSplits: 1)
                guard parts.count == 2, let form = try columns.nextIfAny(String.self).flatMap({ AnswerForm(text: $0) }) else { return nil }
                return (String(parts[0]), WriteRoute(name: String(parts[1])), form)
            }
        }
    }

    /// Stores changes of what an upstream answers.
    package func keep(_ changes: [EmptyAnswers.Change], upstream: String) async throws {
        try await recorded {
            try await queue.commit(weight: 512 * Int64(changes.count), scope: .own) { db in
                for change in changes {
                    let scope = "\(Self.replies)\(upstream) \(change.route.name)"
                    try db.execute(sql: "DELETE FROM cursor WHERE scope = ?", arguments: [scope])
                    guard let form = change.form else { continue }
                    try db.execute(sql: "INSERT INTO cursor (scope, value) VALUES (?, ?)", arguments: [scope, form.text])
                }
            }
        }
    }
}
