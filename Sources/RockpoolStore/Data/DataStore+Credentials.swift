// `credentials: sealed`: the newest live credential of an identity, encrypted, so that its writes continue after a restart
// (docs/outbox.md#credentials).
import Crypto
import FoundationEssentials
import GRDB
import HTTPTypes
package import RockpoolCore

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
}
