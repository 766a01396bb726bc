// The keys that may be stored, so that a read of a new URL asks no disk (docs/storage.md#what-is-stored-where).
import FoundationEssentials
import GRDB
import Logging
import Synchronization

/// Fingerprints of the stored keys: four bytes of each key's hash. A key that is not among them is not stored; one that is may be.
///
/// A fingerprint stays when its entry is removed, because another key may have the same. Once many are out of date, all are read anew.
final class StoredKeys: Sendable {
    private struct State {
        /// Nil until they were read.
        var known: Set<UInt32>?
        /// The keys that were stored since a reading began; nil without one.
        var stored: Set<UInt32>?
        /// The number of fingerprints at which they are read anew.
        var limit = 0
    }

    /// The number of fingerprints out of date that are not worth a reading.
    private static let slack = 65_536

    private let state = Mutex(State())

    /// True if an entry with this key hash may be stored.
    func mayHold(_ hash: Data) -> Bool { state.withLock { $0.known?.contains(Self.fingerprint(hash)) ?? true } }

    /// Notes a key before its row commits.
    /// - Returns: true if the keys should be read anew.
    func note(_ hash: Data) -> Bool {
        state.withLock { state in
            let fingerprint = Self.fingerprint(hash)
            state.known?.insert(fingerprint)
            state.stored?.insert(fingerprint)
            return state.stored == nil && state.known.map { $0.count > state.limit } ?? false
        }
    }

    /// Reads the keys. Every key that was noted is committed when the reading begins, or noted again in `stored`.
    /// - Throws: `DatabaseError`, `QueueClosed`, `CancellationError`; then the former state stays.
    func read(from database: StoreDatabase, by queue: CommitQueue) async throws {
        let isFirst = try await queue.outside { _ in
            self.state.withLock { state in
                defer { state.stored = state.stored ?? [] }
                return state.stored == nil
            }
        }
        guard isFirst else { return }
        do {
            let read = try await database.pool.read { db in
                var read: Set<UInt32> = []
                let hashes = try Data.fetchCursor(db, sql: "SELECT key_hash FROM entry")
                while let hash = try hashes.next() {
                    read.insert(Self.fingerprint(hash))
                    try Task.checkCancellation()
                }
                return read
            }
            state.withLock { state in
                let known = read.union(state.stored ?? [])
                (state.known, state.stored, state.limit) = (known, nil, 2 * known.count + Self.slack)
            }
        } catch {
            state.withLock { $0.stored = nil }
            throw error
        }
    }

    private static func fingerprint(_ hash: Data) -> UInt32 { hash.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
}

extension CacheStore {
    /// Reads the stored keys in the background; until that has ended, every lookup asks the database.
    func readKeysInBackground() {
        keyReading.withLock { reading in
            reading = Task { [keys, database, queue, logger] in
                do { try await keys.read(from: database, by: queue) } catch is CancellationError {} catch is QueueClosed {} catch {
                    logger.debug("the stored keys are not read", metadata: ["why": "\(error)"])
                }
            }
        }
    }
}
