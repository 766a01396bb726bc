// The keys and paths that may be stored, so that a new URL, and a write to it, ask no disk (docs/storage.md#what-is-stored-where).
import FoundationEssentials
import GRDB
import RockpoolCore
import Synchronization

/// Fingerprints of the keys and of the URLs without query under which entries are stored, four bytes each. What is not among them is not
/// stored; what is may be.
///
/// A fingerprint stays when its entry is removed, because another entry may have the same. Once many are out of date, all are read anew.
final class StoredKeys: Sendable {
    private struct Names {
        var keys: Set<UInt32> = []
        var paths: Set<UInt32> = []
        /// Those of `paths` under which URLs with another spelling of them are stored.
        var spelled: Set<UInt32> = []

        mutating func add(_ url: String) {
            let path = StoredKeys.fingerprint(ofPath: url)
            paths.insert(path)
            if StoredKeys.isSpelled(url) { spelled.insert(path) }
        }
    }

    private struct State {
        /// Nil until they were read.
        var known: Names?
        /// Those of the entries that were stored since a reading began; nil without one.
        var stored: Names?
        /// The number of keys at which they are read anew.
        var limit = 0
    }

    /// The number of fingerprints out of date that are not worth a reading.
    private static let slackCount = 65_536

    private let state = Mutex(State())

    /// True if an entry with this key hash may be stored.
    func mayHold(_ hash: Data) -> Bool { state.withLock { $0.known?.keys.contains(Self.fingerprint(hash)) ?? true } }

    /// True if an entry may be stored under this URL, with any query.
    func mayHold(path url: String) -> Bool { state.withLock { $0.known?.paths.contains(Self.fingerprint(ofPath: url)) ?? true } }

    /// True if an entry may be stored under another spelling of this URL, with any query.
    func mayBeSpelled(_ url: String) -> Bool {
        if Self.isSpelled(url) { return true }
        return state.withLock { $0.known?.spelled.contains(Self.fingerprint(ofPath: url)) ?? true }
    }

    /// Notes an entry before its row commits, and before it is asked whether its URL was invalidated: an invalidation that is noted later
    /// then finds the row.
    /// - Returns: `isNew` if no entry of the key was stored; `isDue` if the names should be read anew.
    func note(_ hash: Data, url: String) -> (isNew: Bool, isDue: Bool) {
        let key = Self.fingerprint(hash)
        return state.withLock { state in
            let isNew = state.known?.keys.insert(key).inserted ?? false
            state.known?.add(url)
            state.stored?.keys.insert(key)
            state.stored?.add(url)
            return (isNew, state.stored == nil && state.known.map { $0.keys.count > state.limit } ?? false)
        }
    }

    /// Reads the names. Every entry that was noted is committed when the reading begins, or noted again in `stored`.
    /// - Throws: `DatabaseError`, `QueueClosed`, `CancellationError`; then the former state stays.
    func read(from database: StoreDatabase, by queue: CommitQueue) async throws {
        let isFirst = try await queue.outside { _ in
            self.state.withLock { state in
                defer { state.stored = state.stored ?? Names() }
                return state.stored == nil
            }
        }
        guard isFirst else { return }
        do {
            let read = try await database.pool.read { db in
                var read = Names()
                let hashes = try Data.fetchCursor(db, sql: "SELECT key_hash FROM entry")
                while let hash = try hashes.next() {
                    read.keys.insert(Self.fingerprint(hash))
                    try Task.checkCancellation()
                }
                let urls = try String.fetchCursor(db, sql: "SELECT url FROM entry")
                while let url = try urls.next() {
                    read.add(url)
                    try Task.checkCancellation()
                }
                return read
            }
            state.withLock { state in
                let stored = state.stored ?? Names()
                let known = Names(
                    keys: read.keys.union(stored.keys), paths: read.paths.union(stored.paths), spelled: read.spelled.union(stored.spelled))
                (state.known, state.stored, state.limit) = (known, nil, 2 * known.keys.count + Self.slackCount)
            }
        } catch {
            state.withLock { $0.stored = nil }
            throw error
        }
    }

    private static func fingerprint(_ hash: Data) -> UInt32 { hash.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }

    private static func fingerprint(ofPath url: String) -> UInt32 {
        UInt32(truncatingIfNeeded: url.withoutQuery.canonicalEscapes.hashValue)
    }

    /// True if the URL has another spelling than the canonical one.
    private static func isSpelled(_ url: String) -> Bool {
        url.utf8.contains(UInt8(ascii: "%")) && url.canonicalEscapes != url
    }
}

extension String {
    /// A URL up to its query.
    var withoutQuery: Substring { self[..<(utf8.firstIndex(of: UInt8(ascii: "?")) ?? endIndex)] }
}
