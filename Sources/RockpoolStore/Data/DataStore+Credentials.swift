// `credentials: sealed`: the newest live credential of an identity, encrypted, so that its writes continue after a restart
// (docs/outbox.md#credentials).
import Crypto
import FoundationEssentials
import GRDB
package import HTTPTypes
package import RockpoolCore
import Synchronization

extension DataStore {
    /// How long an unused sealed credential is kept.
    package static let sealedFor = TimeSpan.days(30)

    /// Replaces the stored credential of a principal: AES-GCM under a key derived from this installation's, bound to its principal.
    /// - Throws: `.full`, `.unavailable`.
    package func seal(_ credential: SealedCredential) async throws {
        let box = try AES.GCM.seal(
            FieldCodec.encode(credential.secrets), using: sealingKey, authenticating: Data(credential.principal.utf8))
        guard let sealed = box.combined else { return }
        try await translated {
            try await queue.commit(scope: .own) { db in
                try db.execute(
                    sql: """
                        INSERT INTO credential (principal, upstream, sealed, at) VALUES (?1, ?2, ?3, ?4)
                        ON CONFLICT (principal) DO UPDATE SET upstream = ?2, sealed = ?3, at = ?4
                        """, arguments: [credential.principal, credential.upstream, sealed, credential.at.milliseconds])
            }
        }
    }

    /// Deletes the credential of a principal, if one is stored.
    /// - Throws: `.unavailable`.
    package func unseal(principal: String) async throws {
        try await recorded {
            try await queue.commit(scope: .own) {
                try $0.execute(sql: "DELETE FROM credential WHERE principal = ?", arguments: [principal])
            }
        }
    }

    /// Returns the stored credentials of these upstreams and deletes all others: those of upstreams that keep credentials in memory, those
    /// unused for `sealedFor`, those that cannot be decrypted. Blocks: for the start and a new configuration only.
    package func sealedCredentials(of upstreams: Set<String>, now: Timestamp) throws -> [SealedCredential] {
        try database.pool.write { db in
            var kept: [SealedCredential] = []
            for row in try Row.fetchAll(db, sql: "SELECT principal, upstream, sealed, at FROM credential") {
                var columns = RowReader(row)
                let (principal, upstream): (String, String) = (try columns.next(), try columns.next())
                let (sealed, at) = (try columns.next(Data.self), Timestamp(milliseconds: try columns.next()))
                if upstreams.contains(upstream), at + Self.sealedFor > now, let secrets = opened(sealed, of: principal) {
                    kept.append(SealedCredential(principal: principal, upstream: upstream, secrets: secrets, at: at))
                } else {
                    try db.execute(sql: "DELETE FROM credential WHERE principal = ?", arguments: [principal])
                }
            }
            return kept
        }
    }

    /// Deletes expired credentials while the server runs.
    func trimSealed(now: Timestamp) async throws {
        let moment = (now - Self.sealedFor).milliseconds
        try await queue.commit(scope: .own) { try $0.execute(sql: "DELETE FROM credential WHERE at <= ?", arguments: [moment]) }
    }

    private func opened(_ sealed: Data, of principal: String) -> HTTPFields? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed),
            let fields = try? AES.GCM.open(box, using: sealingKey, authenticating: Data(principal.utf8))
        else { return nil }
        return FieldCodec.decode(fields)
    }

    private var sealingKey: SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: installKey), info: Data("rockpool credential 1".utf8), outputByteCount: 32)
    }

    // The effect of accepted credentials on open operations: the share on which they count (docs/reference/behaviour.md#shares *queue
    // shares*).

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

/// A stored credential.
package struct SealedCredential: Hashable, Sendable {
    package var principal: String
    /// Name of the declared upstream.
    package var upstream: String
    /// The header fields that carry it.
    package var secrets: HTTPFields
    /// The last time it was known to be accepted.
    package var at: Timestamp

    package init(principal: String, upstream: String, secrets: HTTPFields, at: Timestamp) {
        self.principal = principal
        self.upstream = upstream
        self.secrets = secrets
        self.at = at
    }
}

/// A credential that the upstream has accepted, by its name (an HMAC, see `identityName`), with its principal.
package struct ProvedCredential: Hashable, Sendable {
    package var name: String
    package var principal: String
    /// The last time it was known to be accepted.
    package var at: Timestamp

    package init(name: String, principal: String, at: Timestamp) {
        self.name = name
        self.principal = principal
        self.at = at
    }
}
