// Conversion between an entry and its row (docs/storage.md#what-is-stored-where).
import Crypto
import FoundationEssentials
import GRDB
package import RockpoolCore

/// The columns of one entry, without its id.
struct EntryRow: Sendable {
    var key: CacheKey
    var response: StoredResponse
    var bodyHash: [UInt8]
    /// nil when the body is a file.
    var inlineBody: [UInt8]?
    /// Allocated bytes of the file, or else the bytes of the row.
    var bytes: Int64
    /// The coding of the body in the row or the file.
    var bodyCoding = StoredCoding.plain
    /// `keyHash` of the key.
    let keyHash: Data

    static func keyHash(_ key: CacheKey) -> Data {
        unsafe SHA256.hash(data: Array(key.text.utf8)).withUnsafeBytes { unsafe Data($0.prefix(16)) }
    }

    static let insertion = """
        INSERT INTO entry (key_hash, variant, key, url, origin, identity, category, status, fields, request_fields, request_time,
            asked, response_time, assigned_ttl, stored_at, used_at, fresh_until, kept_until, pinned, invalid, bytes, body_sha,
            body_length, in_file, coding, part, own_write_at, own_write_included, uses, rank, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """

    /// Inserts the row and returns its id.
    /// - Parameter uses: as the column: more than `CacheSchema.unread` if it takes the place of another one, or left a moment ago.
    func insert(
        in db: Database, index: IndexSeal, lifetime: EntryLifetime, origin: String, now: Timestamp, isPinned: Bool, uses: Int64
    ) throws -> Int64 {
        let floor = try CacheSchema.floor(of: response.category, in: db)
        let rank = EvictionOrder.rank(requests: CacheSchema.requests(uses), bytes: bytes, above: floor)
        let statement = try db.cachedStatement(sql: Self.insertion)
        // Values of one type: of any others, an array of this length costs more than the row.
        let stored = index.sealed(key)
        let identifying: [DatabaseValue] = [
            keyHash.databaseValue, Vary.variantKey(response.requestFields).databaseValue, stored.text.databaseValue,
            stored.url.databaseValue, origin.databaseValue, key.identity.databaseValue, response.category.databaseValue,
            response.head.status.databaseValue, FieldCodec.encode(response.head.fields).databaseValue,
            FieldCodec.encode(response.requestFields).databaseValue,
        ]
        let times: [DatabaseValue] = [
            response.requestTime.milliseconds.databaseValue, response.asked.number.databaseValue,
            response.responseTime.milliseconds.databaseValue,
            response.assignedTTL?.milliseconds.databaseValue ?? .null, now.milliseconds.databaseValue,
            now.milliseconds.databaseValue, lifetime.freshUntil.milliseconds.databaseValue,
            lifetime.keptUntil.milliseconds.databaseValue, isPinned.databaseValue, response.isInvalidated.databaseValue,
        ]
        let body: [DatabaseValue] = [
            bytes.databaseValue, bodyHash.data.databaseValue, response.bodyLength.databaseValue, (inlineBody == nil).databaseValue,
            bodyCoding.rawValue.databaseValue, (response.part?.range?.lowerBound ?? -1).databaseValue,
            response.ownWrite?.at.number.databaseValue ?? .null, (response.ownWrite?.isIncluded ?? false).databaseValue,
            uses.databaseValue, rank.databaseValue, inlineBody?.data.databaseValue ?? .null,
        ]
        try statement.run(identifying + times + body, in: db)
        return db.lastInsertedRowID
    }

    /// The columns that `entry(from:key:)` reads.
    static let columns = """
        id, status, fields, request_fields, request_time, asked, response_time, assigned_ttl, category, stored_at, pinned, invalid,
        body_sha, body_length, in_file, coding, own_write_at, own_write_included
        """

    /// Decodes the entry of a row that consists of the key and then `columns`.
    /// - Throws: `UnreadableRow` for a row that does not match the schema.
    static func keyed(from row: Row, _ index: IndexSeal) throws -> CacheEntry {
        var columns = RowReader(row)
        return try keyed(from: &columns, index)
    }

    /// - Throws: as `keyed(from:)` for a row.
    static func keyed(from columns: inout RowReader, _ index: IndexSeal) throws -> CacheEntry {
        guard let key = CacheKey(text: index.opened(try columns.next())) else { throw UnreadableRow(column: 0) }
        return try entry(from: &columns, key: key)
    }

    /// Decodes an entry; the reader is at the first of `columns`.
    /// - Throws: `UnreadableRow` for a row that does not match the schema.
    static func entry(from columns: inout RowReader, key: CacheKey) throws -> CacheEntry {
        let id: Int64 = try columns.next()
        let status: Int = try columns.next()
        guard let fields = FieldCodec.decode(try columns.next()), let requestFields = FieldCodec.decode(try columns.next()) else {
            throw UnreadableRow(column: 2)
        }
        var response = StoredResponse(
            head: ResponseHead(status: status, fields: fields), requestFields: requestFields,
            requestTime: Timestamp(milliseconds: try columns.next()), asked: Tick(number: try columns.next()),
            responseTime: Timestamp(milliseconds: try columns.next()),
            bodyLength: 0, category: "", assignedTTL: try columns.nextIfAny(Int64.self).map(TimeSpan.init(milliseconds:)))
        response.category = try columns.next()
        let storedAt = Timestamp(milliseconds: try columns.next())
        let isPinned: Bool = try columns.next()
        response.isInvalidated = try columns.next()
        let hash: Data = try columns.next()
        response.bodyLength = try columns.next()
        let isInFile: Bool = try columns.next()
        guard let coding = StoredCoding(rawValue: try columns.next()) else { throw UnreadableRow(column: 15) }
        let ownWriteAt = try columns.nextIfAny(Int64.self)
        let isIncluded: Bool = try columns.next()
        response.isHeadOnly = key.isOfHead
        response.ownWrite = ownWriteAt.map { OwnWriteMark(at: Tick(number: $0), isIncluded: isIncluded) }
        return CacheEntry(
            id: id, key: key, response: response, storedAt: storedAt, isPinned: isPinned, bodyHash: Array(hash),
            bodyIsInFile: isInFile, bodyCoding: coding)
    }
}

/// The end of an entry's freshness and of its usefulness, the criteria of eviction and cleanup.
struct EntryLifetime: Sendable {
    var freshUntil: Timestamp
    /// The later of the end of its freshness and the end of its category's offline window.
    var keptUntil: Timestamp

    init(_ response: StoredResponse, categories: [CacheCategory]) {
        let freshness = Freshness.of(response, now: response.responseTime)
        let window = categories.first { $0.name == response.category }?.offlineWindow ?? .forever
        freshUntil = response.responseTime + freshness.remaining
        keptUntil = max(freshUntil, response.responseTime + window)
    }
}

/// One stored response (docs/architecture.md#vocabulary, "entry").
package struct CacheEntry: Sendable {
    /// The id of its row; never reused.
    package let id: Int64
    /// The key it was found by.
    package let key: CacheKey
    package var response: StoredResponse
    package var storedAt: Timestamp
    package var isPinned: Bool
    /// SHA-256 of the body, or the name that its seal makes of that.
    package let bodyHash: [UInt8]
    /// True if the body is a file of `bodies/`, false if it is in the row.
    package let bodyIsInFile: Bool
    /// The coding in which the body is stored.
    var bodyCoding = StoredCoding.plain
}
