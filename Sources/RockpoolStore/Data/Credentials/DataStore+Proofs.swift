// The effect of accepted credentials on open operations: the share on which they count (docs/reference/behaviour.md#shares *queue shares*).
import GRDB
package import RockpoolCore
import Synchronization

extension DataStore {
    /// Prefix of the rows of `total` that record when an upstream first accepted a credential.
    private static let mark = "credentials at "

    /// Returns true if an upstream is known to have accepted any credential. Reads nothing.
    package func takesCredentials(_ upstream: String) -> Bool { held.withLock { $0.takingCredentials.contains(upstream) } }

    static func upstreamsTakingCredentials(in db: Database) throws -> Set<String> {
        let names = try String.fetchAll(db, sql: "SELECT name FROM total WHERE name LIKE ?", arguments: ["\(mark)%"])
        return Set(names.map { String($0.dropFirst(mark.count)) })
    }

    /// Records the first credential that an upstream has accepted: a client without a credential is unproved there from now on, and so are
    /// its open operations.
    /// - Throws: `.full`, `.unavailable`; the fact then holds until the store closes.
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
                            AND \(OperationState.isOpen)
                            AND NOT EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = op.seq)
                        """, arguments: [upstream])
            }
        }
    }

    /// Records that an upstream has accepted a credential of `principal`: its earlier operations count on its own share and get the usual
    /// retention. Writes only if there are such operations.
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
