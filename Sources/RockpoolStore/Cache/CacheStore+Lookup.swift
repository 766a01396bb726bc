// Lookups: the memory tier, then one indexed read, then the body with its checksum (docs/storage.md#what-is-stored-where).
import Crypto
import FoundationEssentials
import GRDB
import Logging
package import NIOCore
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// Returns every stored variant of the key, newest first, from memory or by one indexed read.
    /// - Throws: `DatabaseError` or `UnreadableRow`; the caller treats these as a miss.
    package func lookup(_ key: CacheKey) async throws -> [CacheEntry] { try await lookup([key]) }

    /// Returns the stored variants of several keys, in the order of the keys. One database read fetches all keys missing from memory.
    /// - Throws: `DatabaseError` or `UnreadableRow`; the caller treats these as a miss.
    package func lookup(_ keys: [CacheKey]) async throws -> [CacheEntry] {
        var found = keys.map { memory.entries(of: $0) }
        let missing = keys.indices.filter { found[$0] == nil }
        if missing.isEmpty { return found.flatMap { $0 ?? [] } }
        let epochs = missing.map { memory.epoch(of: keys[$0]) }
        let hashes = missing.map { EntryRow.keyHash(keys[$0]) }
        var read = missing.map { _ in [CacheEntry]() }
        if hashes.contains(where: self.keys.mayHold) {
            read = try await database.pool.read { db in
                try zip(missing, hashes).map { try self.entries(of: keys[$0], hash: $1, in: db) }
            }
        }
        for (index, (epoch, entries)) in zip(missing, zip(epochs, read)) {
            memory.keep(entries, of: keys[index], epoch: epoch)
            found[index] = entries
        }
        return found.flatMap { $0 ?? [] }
    }

    /// False if no entry is stored under the key. Callable on an event loop.
    package func mayHold(_ key: CacheKey) -> Bool { keys.mayHold(EntryRow.keyHash(key)) }

    private func entries(of key: CacheKey, hash: Data, in db: Database) throws -> [CacheEntry] {
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(EntryRow.columns) FROM entry WHERE key_hash = ? AND key IN (?, ?) ORDER BY response_time DESC, id DESC
                """)
        return try statement.all([hash.databaseValue, index.sealed(key).text.databaseValue, key.text.databaseValue], in: db) {
            try EntryRow.entry(from: &$0, key: key)
        }
    }

    /// Returns every variant of the key that memory holds; nil when the database must be read. Callable on an event loop.
    package func lookupInMemory(_ key: CacheKey) -> [CacheEntry]? { memory.entries(of: key) }

    /// Returns the body if memory holds it. Callable on an event loop.
    package func bodyInMemory(of entry: CacheEntry) -> ByteBuffer? { memory.body(of: entry) }

    /// Returns the body after verifying its checksum (of a file once per run); nil when it is missing or damaged, and then its entries are
    /// removed.
    /// - Throws: `FileError` when the disk cannot read it now, `DatabaseError`; the caller treats these as a miss, and the entries stay.
    package func body(of entry: CacheEntry) async throws -> CachedBody? {
        if let bytes = memory.body(of: entry) { return .bytes(bytes) }
        guard let body = entry.bodyIsInFile ? try await fileBody(of: entry) : try await inlineBody(of: entry) else {
            try await drop(entry)
            return nil
        }
        if case .bytes(let bytes) = body { memory.keep(bytes, of: entry) }
        return body
    }

    private func inlineBody(of entry: CacheEntry) async throws -> CachedBody? {
        let stored = try await database.pool.read { db in
            try Data.fetchOne(try db.cachedStatement(sql: "SELECT body FROM entry WHERE id = ?"), arguments: [entry.id])
        }
        guard let stored, let opened = entry.bodyCoding.isSealed ? try? seal.open(Array(stored)) : Array(stored) else { return nil }
        return unpacked(opened, entry: entry).map { .bytes(ByteBuffer(bytes: $0)) }
    }

    private func fileBody(of entry: CacheEntry) async throws -> CachedBody? {
        let hash = entry.bodyHash
        let length = entry.response.bodyLength
        guard let lease = lease(hash) else { return nil }
        let limit = memory.bodyLimit
        return try await lanes.run(UInt64(hash.first ?? 0)) { [bodies, seal] in
            let isSealed = entry.bodyCoding.isSealed
            if entry.bodyCoding.isDeflated {
                return try bodies.bytes(of: hash, seal: isSealed ? seal : nil).flatMap { self.unpacked($0, entry: entry) }
                    .map { .bytes(ByteBuffer(bytes: $0)) }
            }
            guard try bodies.isIntact(hash, length: length, seal: isSealed ? seal : nil) else { return nil }
            let path = bodies.path(of: hash)
            if length > limit {
                return isSealed
                    ? .sealed(try SealedFile(path, seal), 0..<length, lease: lease)
                    : .file(path: path, offset: 0, length: length, lease: lease)
            }
            let bytes = isSealed ? try SealedFile(path, seal).bytes() : try FileBytes.read(path)
            return Int64(bytes.count) == length ? .bytes(ByteBuffer(bytes: bytes)) : nil
        }
    }

    /// Keeps a body's file on the disk while it is read; returns nil when it is being unlinked and no entry refers to it any more.
    func lease(_ hash: [UInt8]) -> BodyLease? {
        bodies.lease(hash) { [queue] in
            // The hook that follows every turn of the writer unlinks the file.
            Task { try? await queue.outside { _ in } }
        }
    }

    /// Removes the entries that refer to a missing or damaged body.
    private func drop(_ entry: CacheEntry) async throws {
        let keys = try await queue.commit { db in
            let rows = try EvictionCandidate.fetch(
                // Restricted to the coding that this reader saw: a body stored again since in another coding is not the one found damaged.
                in: db, where: (entry.bodyIsInFile ? "in_file = 1 AND body_sha = ?" : "id = ?") + " AND coding = ?",
                arguments: [entry.bodyIsInFile ? entry.bodyHash.data : entry.id, entry.bodyCoding.rawValue], limit: Self.variantLimit)
            try self.delete(rows, in: db)
            return rows.map(\.key)
        }
        memory.remove(keys + [entry.key.text])
        guard !keys.isEmpty else { return }
        counters.withLock { $0.badBodies += 1 }
        logger.notice(
            "a stored body was not what it had been; its entries are dropped",
            metadata: ["url": "\(SecretParameters.redacted(url: entry.key.url))"])
    }

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

    // MARK: - Ranges
    // Reads ranges of a stored body, for range requests and for joining parts (RFC 9110 §14).

    /// Returns the SHA-256 in hexadecimal that represents a request's body in a cache key.
    package static func digest(of bytes: some Sequence<UInt8>) -> String { Digest.hex(SHA256.hash(data: Array(bytes))) }

    /// Returns the bytes of a body at these offsets; empty when the body does not contain all of them. - Throws: `FileError` of the disk.
    package func read(_ range: Range<Int64>, of body: CachedBody) async throws -> ByteBuffer {
        switch body.slice(range) {
        case nil: return ByteBuffer()
        case .bytes(let bytes): return bytes
        case .file(let path, let offset, let length, let lease):
            defer { withExtendedLifetime(lease) {} }
            return try await lanes.run(UInt64(truncatingIfNeeded: range.lowerBound)) {
                ByteBuffer(bytes: try FileBytes.read(path, from: offset, upTo: Int(length)))
            }
        case .sealed(let file, let range, let lease):
            defer { withExtendedLifetime(lease) {} }
            return try await lanes.run(UInt64(truncatingIfNeeded: range.lowerBound)) { try file.read(range) }
        }
    }

    // MARK: - Hot replies
    // Hot replies for the engine. Every function here may be called on an event loop.

    /// The current removal count. Read it before reading anything that a hot reply is made from: entries, routes, the clock.
    package var hotMoment: UInt64 { memory.moment }

    /// Counts what may void a message that was found (`HotFind.message`).
    package var hotChanges: UInt64 { memory.changes.load(ordering: .acquiring) }

    /// Returns the reply that memory has for a plain request; nil when the request needs the full path.
    /// - Parameters:
    ///   - hash: `arrival.hash`.
    ///   - epoch: the current state of the upstreams (`HotMessage.epoch`).
    package func hot(_ arrival: PlainArrival, hash: Int, now: Timestamp, epoch: UInt64) -> HotFind? {
        memory.hot(arrival, hash: hash, now: now, epoch: epoch)
    }

    /// Keeps a reply while its entry is in memory, unless the data it was made from has changed since `moment`.
    /// - Parameters:
    ///   - reader: the client that it was chosen for.
    ///   - sibling: the other key considered when this entry was chosen.
    ///   - credential: the name of the request's credential; nil without one.
    package func keep(_ reply: FastPathReply, for reader: HotReader, sibling: CacheKey, credential: String?, since moment: UInt64) {
        memory.keep(reply, for: reader, sibling: sibling, credential: credential, since: moment)
    }

    /// Keeps the message of a hot reply and records a use of its entry. This happens at most a few times a second, however often the
    /// message is sent.
    package func keep(_ message: HotMessage, as form: FastPathReply.Form, of reply: FastPathReply) {
        memory.keep(message, as: form, of: reply)
        use(reply.entry)
    }

    /// Returns the places of keys, and of a credential, for `isUnchanged`.
    package func slots(of keys: [String], credential: String?) -> [Int] { MemoryTier.slots(of: keys, credential: credential) }

    /// True if nothing was stored or removed at `slots` since `moment` (`hotMoment`).
    package func isUnchanged(_ slots: [Int], since moment: UInt64) -> Bool { memory.isUnchanged(slots, since: moment) }

    /// Discards the hot replies for a credential. Call it when the credential is found to belong to another principal.
    package func forgetHot(ofCredential name: String) { memory.forgetHot(ofCredential: name) }

    /// Discards all hot replies. Call it when the same requests need different responses from now on.
    package func forgetHot() { memory.forgetHot() }
}
