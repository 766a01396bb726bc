// Invalidation of stored responses after an unsafe request, by URL and by group (RFC 9111 §4.4, RFC 9875).
import GRDB
package import NIOCore
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Invalidates the entries of these absolute URLs, every variant and identity: they must be revalidated before reuse, and so must the
    /// response to a request that is already in flight (RFC 9111 §4.4).
    /// - Parameter moment: when the unsafe request was answered; nil for now. Entries that were requested after it stay as they are.
    /// - Returns: the number of invalidated entries.
    /// - Throws: `DatabaseError`.
    package func invalidate(urls: [String], at moment: Tick? = nil) async throws -> Int {
        let (now, newest) = (clock(), moment ?? .last)
        invalidations.note(urls.map { .url($0) }, at: moment ?? ticks.next())
        let stored = try await spellings(of: urls.filter { keys.mayHold(path: $0) }) { $0 }
        guard !stored.isEmpty else { return 0 }
        let marked = try await queue.commit(isRepeatable: true) { db in
            let statement = try db.cachedStatement(
                sql: "UPDATE entry SET invalid = 1, fresh_until = min(fresh_until, ?1) WHERE url = ?2 AND asked <= ?3 RETURNING key")
            return try stored.flatMap(self.index.forms).flatMap {
                try String.fetchAll(statement, arguments: [now.milliseconds, $0, newest.number])
            }
        }
        memory.remove(marked)
        return marked.count
    }

    /// Returns URLs in every spelling under which entries are stored: keys hold URLs as their clients have spelled them.
    /// - Parameter part: the part of a stored URL that is compared.
    private func spellings(of urls: [String], by part: @escaping @Sendable (String) -> String) async throws -> [String] {
        let spelled = urls.filter { keys.mayBeSpelled($0) }
        guard !spelled.isEmpty else { return urls }
        let wanted = Set(spelled.map(\.canonicalEscapes))
        let found = try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT DISTINCT url FROM entry WHERE url >= ?1 AND url < ?1 || char(1114111) AND instr(url, '%') > 0")
            return try Set(spelled.map { Self.origin(of: $0) }).flatMap { origin in
                try String.fetchAll(statement, arguments: [origin]).map { part(self.index.opened($0)) }
                    .filter { wanted.contains($0.canonicalEscapes) }
            }
        }
        return Array(Set(urls).union(wanted).union(found))
    }

    /// Invalidates URLs of which nothing is stored, as `invalidate(urls:)` and `markOwnWrite` do: for the responses to requests in flight.
    /// - Parameters:
    ///   - near: the URLs that `markNearOwnWrite` would mark.
    ///   - partitions: those that the writer reads.
    /// - Returns: false if something may be stored that is not marked already: then those must be called.
    package func invalidateAbsent(_ urls: [String], near: [String], partitions: [StoragePartition]) -> Bool {
        let moment = ticks.next()
        invalidations.note(urls.map { .url($0) } + urls.map { .path($0) }, at: moment)
        return !urls.contains { keys.mayHold(path: $0) } && unmarked(near, in: partitions, at: moment).isEmpty
    }

    /// Notes an own write near these URLs, and returns those of which a copy may be stored that is not marked yet.
    private func unmarked(_ urls: [String], in partitions: [StoragePartition], at moment: Tick) -> [String] {
        guard !urls.isEmpty else { return [] }
        invalidations.note(urls.map { .near($0) }, at: moment)
        let names = Self.names(of: partitions)
        return urls.filter { keys.mayHold(path: $0) && !invalidations.isMarked($0, in: names) }
    }

    private static func names(of partitions: [StoragePartition]) -> String { partitions.map(\.name).joined(separator: "\n") }

    /// Marks the responses to GET of these absolute URLs without query, and of the same paths with one, in the writer's partitions as older
    /// than an own write nearby, which their representation may include: each is validated before its next use, by its validators, and served
    /// away with `Rockpool-Dirty: 1`. Responses to requests that were sent before count likewise.
    /// - Parameters:
    ///   - partitions: those that the writer reads.
    ///   - moment: the end of the write.
    /// - Throws: `DatabaseError`.
    package func markNearOwnWrite(urls: [String], partitions: [StoragePartition], at moment: Tick) async throws {
        let stored = unmarked(urls, in: partitions, at: moment)
        guard !stored.isEmpty else { return }
        let now = clock()
        let names = partitions.map(\.name)
        let marked = try await queue.commit(isRepeatable: true) { db in
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE entry SET fresh_until = min(fresh_until, ?1), own_write_at = ?5, own_write_included = 0
                    WHERE (url = ?2 OR (url >= ?2 || '?' AND url < ?2 || '@')) AND identity IN (?3, ?4)
                        AND substr(key, 1, 4) IN ('GET' || char(10), 'HEAD') RETURNING key
                    """)
            let marked = try stored.flatMap(self.index.forms).flatMap { url in
                try String.fetchAll(statement, arguments: [now.milliseconds, url, names.first ?? "", names.last ?? "", moment.number])
            }
            self.invalidations.noteMarked(stored, in: Self.names(of: partitions))
            return marked
        }
        memory.remove(marked)
    }

    /// Invalidates every entry of `origin` that belongs to one of these groups (RFC 9875 §3), in batches, so that a large group does not
    /// block the writer.
    /// - Parameter moment: as for `invalidate(urls:at:)`.
    /// - Returns: the number of invalidated entries; an entry of two groups counts twice.
    /// - Throws: `DatabaseError`; entries marked before the error stay marked.
    package func invalidate(groups: [String], origin: OriginAddress, at moment: Tick? = nil) async throws -> Int {
        let (now, newest) = (clock(), moment ?? .last)
        let origin = origin.url
        invalidations.note(groups.map { .group($0, origin: origin) }, at: moment ?? ticks.next())
        var count = 0
        for group in groups {
            count += try await markInBatches { db, last in
                try self.mark(in: db, group: group, origin: origin, after: last, at: now, newest: newest)
            }
        }
        return count
    }

    /// Marks entries batch by batch, in the order of their ids; `mark` gets the last id before its batch.
    private func markInBatches(_ mark: @escaping @Sendable (Database, Int64) throws -> [(id: Int64, key: String)]) async throws -> Int {
        var (count, last): (Int, Int64) = (0, 0)
        while true {
            let from = last
            let batch = try await queue.commit(weight: .kib(Int64(batchRows))) { db in try mark(db, from) }
            memory.remove(batch.map(\.key))
            count += batch.count
            guard batch.count == batchRows, let end = batch.map(\.id).max() else { return count }
            last = end
        }
    }

    private func mark(
        in db: Database, group: String, origin: String, after last: Int64, at now: Timestamp, newest: Tick
    ) throws -> [(id: Int64, key: String)] {
        let statement = try db.cachedStatement(
            sql: """
                UPDATE entry SET invalid = 1, fresh_until = min(fresh_until, ?1) WHERE id IN (
                    SELECT entry_group.entry FROM entry_group JOIN entry ON entry.id = entry_group.entry
                        WHERE name = ?2 AND entry_group.origin = ?3 AND entry_group.entry > ?4 AND asked <= ?5
                        ORDER BY entry_group.entry LIMIT \(batchRows))
                RETURNING id, key
                """)
        return try Row.fetchAll(statement, arguments: [now.milliseconds, group, origin, last, newest.number]).map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next())
        }
    }

    /// Invalidates every entry whose URL begins with one of these prefixes, in batches.
    /// - Parameter moment: as for `invalidate(urls:at:)`.
    /// - Returns: the number of invalidated entries.
    /// - Throws: `DatabaseError`; entries marked before the error stay marked.
    package func invalidate(trees: [String], at moment: Tick? = nil) async throws -> Int {
        let (now, newest) = (clock(), moment ?? .last)
        invalidations.note(trees.map { .tree($0) }, at: moment ?? ticks.next())
        var count = 0
        for tree in trees {
            count += try await markInBatches { db, last in try self.mark(in: db, tree: tree, after: last, at: now, newest: newest) }
        }
        return count
    }

    private func mark(
        in db: Database, tree: String, after last: Int64, at now: Timestamp, newest: Tick
    ) throws -> [(id: Int64, key: String)] {
        let statement = try db.cachedStatement(
            sql: """
                UPDATE entry SET invalid = 1, fresh_until = min(fresh_until, ?1) WHERE id IN (
                    SELECT id FROM entry WHERE url >= ?2 AND url < ?3 AND id > ?4 AND asked <= ?5 ORDER BY id LIMIT \(batchRows))
                RETURNING id, key
                """)
        return try Row.fetchAll(statement, arguments: [now.milliseconds, tree, tree + "\u{10FFFF}", last, newest.number]).map { row in
            var columns = RowReader(row)
            return (try columns.next(), try columns.next())
        }
    }

    /// True if a response was invalidated while its request was in flight. Called on the writer's thread: an invalidation noted after this
    /// check updates the row itself.
    package func wasInvalidated(_ key: CacheKey, groups: [String], since sent: Tick) -> Bool {
        guard !invalidations.isEmpty else { return false }
        let url = key.url
        let origin = Self.origin(of: url)
        let names = [.url(url), .path(Self.path(of: url))] + Self.trees(above: url)
        return invalidations.happened(toAny: names + groups.map { .group($0, origin: origin) }, since: sent)
    }

    /// Returns the end of the last own write to the URL's path; nil if none is remembered.
    package func ownWrite(to url: String) -> Tick? { invalidations.ownWrite(to: Self.path(of: url), since: .first) }

    /// The prefixes of a URL's path that end in a slash.
    private static func trees(above url: String) -> [Invalidations.Name] {
        let path = url.prefix { $0 != "?" }
        return path.indices.dropFirst(origin(of: url).utf8.count).filter { path[$0] == "/" }.map { .tree(String(path[...$0])) }
    }

    /// Marks a response that was requested before an own write to its path. Throws if a copy that includes the write is stored.
    /// - Throws: `OlderThanOwnWrite`, `DatabaseError`.
    func noteOwnWrites(on response: inout StoredResponse, of key: CacheKey, in db: Database) throws {
        guard response.ownWrite == nil, !invalidations.isEmpty,
            let at = invalidations.ownWrite(to: Self.path(of: key.url), since: response.asked, isNearby: key.isOfGet)
        else { return }
        let newer = try Bool.fetchOne(
            try db.cachedStatement(
                sql: "SELECT 1 FROM entry WHERE key_hash = ? AND own_write_at > ? AND own_write_included = 1"),
            arguments: [EntryRow.keyHash(key), response.asked.number])
        if newer == true { throw OlderThanOwnWrite() }
        response.ownWrite = OwnWriteMark(at: at, isIncluded: false)
    }

    /// Returns the absolute URL without its query.
    static func path(of url: String) -> String { String(url.withoutQuery) }

    /// Sets the groups of an entry to exactly these.
    func setGroups(_ groups: [String], of entry: Int64, origin: String, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM entry_group WHERE entry = ?").execute(arguments: [entry])
        let statement = try db.cachedStatement(sql: "INSERT OR IGNORE INTO entry_group (entry, origin, name) VALUES (?, ?, ?)")
        for group in groups.prefix(Self.groupLimit) { try statement.execute(arguments: [entry, origin, group]) }
    }

    /// Marks every entry of these absolute URLs, and of the same paths with a query, as older than a write. In the writer's own partitions
    /// they count as copies without its effect until another copy replaces them; in other partitions they must be revalidated. Responses
    /// to requests that were sent before count likewise.
    /// - Parameters:
    ///   - partitions: those that the writer reads.
    ///   - moment: the end of the write.
    /// - Throws: `DatabaseError`.
    package func markOwnWrite(urls: [String], partitions: [StoragePartition], at moment: Tick) async throws {
        invalidations.note(urls.map { .path($0) }, at: moment)
        let now = clock()
        let stored = try await spellings(of: urls.filter { keys.mayHold(path: $0) }, by: Self.path)
        guard !stored.isEmpty else { return }
        let names = partitions.map(\.name)
        let marked = try await queue.commit(isRepeatable: true) { db in
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE entry SET invalid = 1, fresh_until = min(fresh_until, ?1),
                        own_write_at = iif(identity IN (?4, ?5), ?6, own_write_at),
                        own_write_included = iif(identity IN (?4, ?5), 0, own_write_included)
                    WHERE url = ?2 OR (url >= ?3 || '?' AND url < ?3 || '@') RETURNING key
                    """)
            return try stored.flatMap(self.index.forms).flatMap { url in
                try String.fetchAll(statement, arguments: [now.milliseconds, url, url, names.first ?? "", names.last ?? "", moment.number])
            }
        }
        memory.remove(marked)
    }

    /// Returns the entries of the URL, and of the same path with a query, that have a whole body and are in one of these partitions; the
    /// newest first.
    /// - Throws: `DatabaseError` or `UnreadableRow`.
    package func copies(ofPath url: String, in partitions: [StoragePartition], limit: Int) async throws -> [CacheEntry] {
        guard keys.mayHold(path: url) else { return [] }
        let url = index.sealed(url)
        let names = partitions.map(\.name)
        return try await database.pool.read { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT key, \(EntryRow.columns) FROM entry
                    WHERE (url = ?1 OR (url >= ?1 || '?' AND url < ?1 || '@')) AND identity IN (?2, ?3) AND part = -1
                        AND substr(key, 1, 5) <> 'HEAD' || char(10)
                    ORDER BY response_time DESC, id DESC LIMIT ?4
                    """)
            let values = [url.databaseValue, (names.first ?? "").databaseValue, (names.last ?? "").databaseValue, limit.databaseValue]
            return try statement.all(values, in: db) { [index] in try EntryRow.keyed(from: &$0, index) }
        }
    }

    /// Stores a body that is at hand under a key, in place of the variant it supersedes.
    /// - Parameter mayLinger: as of `commit`.
    /// - Returns: false if there is no space, or nothing may be written now.
    /// - Throws: as `commit`.
    package func replace(
        _ key: CacheKey, by response: StoredResponse, body: ByteBuffer, category: CacheCategory, mayLinger: Bool = false
    ) async throws -> Bool {
        let length = Int64(body.readableBytes)
        // The first moments after an unclean stop belong to the sweep, and no copy can be fetched in the place of this one.
        for _ in 0..<30 where isSweeping { try? await Task.sleep(for: .milliseconds(100)) }
        guard let writer = await beginWrite(expectedLength: length, category: category, for: key),
            try await writer.append(body)
        else { return false }
        _ = try await commit(writer, key: key, response: response, mayLinger: mayLinger)
        return true
    }

    // MARK: - Pulls
    // Cache access for a pull: the stored URLs and partitions of a resource, and removal of single keys (docs/outbox.md#delta-pull).

    /// Maximum number of URLs in one listing.
    private static let listLimit = 100_000

    /// Returns the names of the partitions that hold GET responses with this URL prefix; "" is the shared partition.
    package func partitions(prefix: String) async throws -> Set<String> {
        try await database.pool.read { db in
            try Set(
                String.fetchAll(
                    db, sql: "SELECT DISTINCT identity FROM entry WHERE url >= ? AND url < ?", arguments: [prefix, prefix + "\u{10FFFF}"]))
        }
    }

    /// Returns the distinct stored URLs with this prefix, sorted; of one partition, or of all.
    /// - Parameters:
    ///   - isPresent: True leaves out the URLs of which only an absence is stored (404, 410).
    ///   - isOutdated: True leaves only the URLs with an entry that is marked as out of date; anonymous copies always are.
    package func urls(
        prefix: String, in partition: StoragePartition? = nil, isPresent: Bool = false, isOutdated: Bool = false
    ) async throws -> [String] {
        let arguments: StatementArguments = [
            prefix, prefix + "\u{10FFFF}", partition?.name, isPresent, isOutdated, StoragePartition.anonymous.name,
        ]
        return try await database.pool.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT DISTINCT url FROM entry
                    WHERE url >= ?1 AND url < ?2 AND (?3 IS NULL OR identity = ?3) AND (NOT ?4 OR status NOT IN (404, 410))
                        AND (NOT ?5 OR invalid = 1 AND identity <> ?6)
                    ORDER BY url LIMIT \(Self.listLimit)
                    """, arguments: arguments
            ).map(self.index.opened)
        }
    }

    /// Removes every variant of these keys.
    /// - Throws: `DatabaseError`; entries removed before the error stay removed.
    package func remove(keys: [CacheKey]) async throws {
        for key in keys {
            _ = try await take(dryRun: false) { db in
                try EvictionCandidate.fetch(
                    in: db, where: "key_hash = ? AND key IN (?, ?)", arguments: self.index.arguments(of: key), limit: Self.variantLimit + 8)
            }
        }
    }
}

/// Thrown for a response that is not stored, because it was requested before an own write whose result is stored.
package struct OlderThanOwnWrite: Error {}

/// Thrown for a response that is not stored, because the copies of its identity were removed after it was requested.
struct IdentityForgotten: Error {}

// MARK: - Recent invalidations

/// Recent invalidations, so that a response in flight does not bring the old state back as fresh (RFC 9111 §4.4). Bounded: a name dropped
/// by the limit is far older than any request in flight.
final class Invalidations: Sendable {
    /// The target of an invalidation.
    enum Name: Hashable, Sendable {
        case url(String)
        /// An absolute URL and the same path with any query, changed by an own write.
        case path(String)
        /// An absolute URL with any query whose representation an own write nearby may have changed: that of a path above the target.
        case near(String)
        /// A cache group of an origin, given as its URL (RFC 9875).
        case group(String, origin: String)
        /// The partition of an identity that was forgotten.
        case identity(String)
        /// Everything whose URL begins with this prefix.
        case tree(String)

        /// The same name for every spelling of its URL.
        var canonical: Name {
            switch self {
            case .url(let url): .url(url.canonicalEscapes)
            case .path(let url): .path(url.canonicalEscapes)
            case .near(let url): .near(url.canonicalEscapes)
            case .tree(let url): .tree(url.canonicalEscapes)
            case .group, .identity: self
            }
        }
    }

    /// The names of two generations: the older one is dropped as a whole, so that no name is moved when another one comes.
    private struct Moments {
        private var recent: [Name: Tick] = [:]
        private var older: [Name: Tick] = [:]

        var isEmpty: Bool { recent.isEmpty && older.isEmpty }

        subscript(_ name: Name) -> Tick? {
            let name = name.canonical
            return recent[name] ?? older[name]
        }

        mutating func note(_ name: Name, at moment: Tick) {
            recent[name.canonical] = moment
            guard recent.count >= Invalidations.generationCount else { return }
            swap(&recent, &older)
            recent.removeAll(keepingCapacity: true)
        }
    }

    /// The number of names in a generation.
    private static let generationCount = 4096

    private let moments = Mutex(Moments())
    /// The paths whose stored copies are all marked as older than an own write nearby, with the partitions they are marked in.
    private let marked = Mutex<[String: Set<String>]>([:])

    /// True if nothing was invalidated lately.
    var isEmpty: Bool { moments.withLock(\.isEmpty) }

    func note(_ names: [Name], at moment: Tick) {
        moments.withLock { moments in
            for name in names { moments.note(name, at: moment) }
        }
    }

    /// Returns the end of the last own write to the path after a request had been sent; nil without one.
    /// - Parameter isNearby: true if a write nearby counts, too.
    func ownWrite(to path: String, since sent: Tick, isNearby: Bool = false) -> Tick? {
        moments.withLock { moments in
            guard !moments.isEmpty else { return nil }
            return [moments[.path(path)], isNearby ? moments[.near(path)] : nil].compactMap(\.self).filter { $0 > sent }.max()
        }
    }

    /// True if every stored copy of the path is marked already as older than a write nearby.
    func isMarked(_ path: String, in partitions: String) -> Bool { marked.withLock { $0[path]?.contains(partitions) ?? false } }

    /// Notes that every stored copy of these paths is marked. Called on the writer's thread.
    func noteMarked(_ paths: [String], in partitions: String) {
        marked.withLock { marked in
            if marked.count >= Self.generationCount { marked = [:] }
            for path in paths { marked[path, default: []].insert(partitions) }
        }
    }

    /// Notes that a copy of the path is stored or updated. Called on the writer's thread, before its row is written.
    func noteStored(_ path: String) {
        marked.withLock { marked in
            if !marked.isEmpty { marked[path] = nil }
        }
    }

    /// True if any of these names was invalidated after a request had been sent.
    func happened(toAny names: [Name], since sent: Tick) -> Bool {
        moments.withLock { moments in
            !moments.isEmpty && names.contains { name in moments[name].map { $0 > sent } ?? false }
        }
    }
}
