// What the upstreams' acceptance of credentials does to operations that are open: on whose share they count (contract §7 *queue shares*).
import GRDB
package import RockpoolCore
import Synchronization

extension DataStore {
    /// Begins the name of the row of `total` that says when an upstream first accepted a credential.
    private static let mark = "credentials at "

    /// Whether an upstream has ever accepted a credential of anybody, as far as this store was told. Reads nothing.
    package func takesCredentials(_ upstream: String) -> Bool { held.withLock { $0.takingCredentials.contains(upstream) } }

    static func upstreamsTakingCredentials(_ db: Database) throws -> Set<String> {
        let names = try String.fetchAll(db, sql: "SELECT name FROM total WHERE name LIKE ?", arguments: ["\(mark)%"])
        return Set(names.map { String($0.dropFirst(mark.count)) })
    }

    /// An upstream has accepted a credential for the first time: who shows it none is unproved from now on, and so is what waits for it
    /// without one.
    /// - Throws: `.full`, `.unavailable`; then it is known until the store closes.
    package func noteCredentials(at upstream: String, now: Timestamp) async throws {
        held.withLock { _ = $0.takingCredentials.insert(upstream) }
        try await translated {
            try await queue.commit { db in
                try db.execute(
                    sql: "INSERT INTO total (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                    arguments: [Self.mark + upstream, now.milliseconds])
                try db.execute(
                    sql: """
                        INSERT INTO unproved (seq, principal) SELECT seq, '' FROM op WHERE upstream = ? AND principal = ''
                            AND state NOT IN (\(OperationRow.endedStates))
                            AND NOT EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = op.seq)
                        """, arguments: [upstream])
            }
        }
    }

    /// An upstream has accepted a credential of `principal`: what was taken from it before counts on its own share, and is kept as long as
    /// others' is. Writes only where there is such.
    /// - Throws: `.full`, `.unavailable`.
    package func noteProof(of principal: String) async throws {
        let isKnown = try await reading { db in
            try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM unproved WHERE principal = ?)", arguments: [principal]) ?? false
        }
        guard isKnown else { return }
        try await translated {
            try await queue.commit { try $0.execute(sql: "DELETE FROM unproved WHERE principal = ?", arguments: [principal]) }
        }
    }
}
