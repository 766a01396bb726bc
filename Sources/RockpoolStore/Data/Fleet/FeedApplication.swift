// Puts the newest rows of the fleet into this node's database (docs/fleet.md#transactions).
import FoundationEssentials
import GRDB
import RockpoolCore

/// Applies items in one transaction. The triggers of the schema are suspended: what they did comes as rows too.
struct FeedApplication {
    private let tables: [String: ReplicatedTable]
    private let blobs: BlobExchange
    private let triggers: OwnTriggers
    private let clockOffset: Int64
    private let now: Timestamp
    private var isDeferring = false
    /// Items that a row stands in the way of, which a later item changes.
    private var waiting: [SharedItem] = []
    private(set) var changes = ForeignChanges()
    /// The last item applied; nil when there was none.
    private(set) var last: SharedLog.Position?

    /// - Parameter clockOffset: the database's time minus this node's, in milliseconds.
    init(_ tables: [ReplicatedTable], blobs: BlobExchange, triggers: OwnTriggers, clockOffset: Int64, now: Timestamp) {
        self.tables = Dictionary(uniqueKeysWithValues: tables.map { ($0.name, $0) })
        (self.blobs, self.triggers, self.clockOffset, self.now) = (blobs, triggers, clockOffset, now)
    }

    /// So many items may be a page of several.
    private static let many = 500

    mutating func take(_ items: [SharedItem], in db: Database) throws {
        guard !items.isEmpty else { return }
        // A row may come on a page before its operation. The pragma makes SQLite compile every statement anew.
        if !isDeferring, items.count > Self.many {
            try db.execute(sql: "PRAGMA defer_foreign_keys = ON")
            isDeferring = true
        }
        try triggers.suspended {
            // A body before the operation that has it, and that before the rows that refer to it.
            for item in items where item.isBody { try blobs.take(item, in: db) }
            for item in items where item.isOperation { try apply(item, in: db, orWait: true) }
            for item in items where !item.isBody && !item.isOperation { try apply(item, in: db, orWait: true) }
            try retry(in: db)
        }
        last = items.max { $0.number < $1.number }.map { .init(number: $0.number, word: $0.word) } ?? last
    }

    /// Call it after the last page.
    /// - Throws: the error of an item that cannot be applied.
    mutating func finish(in db: Database) throws {
        let left = waiting.filter { $0.part == 0 }
        waiting = []
        guard !left.isEmpty else { return }
        try triggers.suspended {
            for item in left { try apply(item, in: db, orWait: false) }
        }
    }

    /// A body came before the row that it belongs to.
    private struct RowIsMissing: Error {}

    private mutating func retry(in db: Database) throws {
        var left = Int.max
        while !waiting.isEmpty, waiting.count < left {
            left = waiting.count
            let items = waiting
            waiting = []
            for item in items { try apply(item, in: db, orWait: true) }
        }
    }

    private mutating func apply(_ item: SharedItem, in db: Database, orWait: Bool) throws {
        if item.table == "sqlite_sequence" { return try number(item, in: db) }
        if item.table == "blob" { return try blobs.remove(item, in: db) }
        guard let table = tables[item.table], let key = RowBytes(item.key) else { return }
        do {
            if let row = item.data.flatMap({ RowBytes($0) }) {
                try put(table.moving(row, by: -clockOffset), key: key, part: item.part, of: table, in: db)
            } else if item.part == 0 {
                try remove(key, of: table, in: db)
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
            if let row = item.data.flatMap({ RowBytes($0) }), try makeWay(for: row, of: item.table, in: db) {
                return try apply(item, in: db, orWait: orWait)
            }
            guard orWait else { throw error }
            return waiting.append(item)
        } catch is RowIsMissing {
            return waiting.append(item)
        }
        note(item, key: key)
    }

    /// Takes a held operation out of the way of a row of the fleet.
    /// - Returns: false if none is in the way.
    private mutating func makeWay(for row: RowBytes, of table: String, in db: Database) throws -> Bool {
        guard table == "op", let held = try HeldOperations.twin(of: row, in: db) else { return false }
        switch held {
        case .same(let sequence, let body):
            // A copy that it was based on stays: the row is based on it too.
            try db.execute(sql: "DELETE FROM op WHERE seq = ?", arguments: [sequence])
            try blobs.move(from: body, to: nil, in: db)
        case .ofKey(let sequence):
            if try HeldOperations.giveWay(sequence, to: row, now: now, in: db) { changes.operations.insert(sequence) }
        }
        return true
    }

    private func put(_ row: RowBytes, key: RowBytes, part: Int, of table: ReplicatedTable, in db: Database) throws {
        if part > 0 {
            guard part <= table.heavy.count else { return }
            let values = [row[table.heavy[part - 1]]] + key.values.map(\.value)
            try db.cachedStatement(sql: table.update(ofPart: part)).execute(arguments: StatementArguments(values))
            guard db.changesCount > 0 else { throw RowIsMissing() }
            return
        }
        let known = Set(table.keys + table.columns)
        let values = row.values.filter { known.contains($0.name) }
        let before = table.name == "op" ? try Self.blob(of: key, in: db) : nil
        try db.cachedStatement(sql: table.insertion(of: values.map(\.name))).execute(arguments: StatementArguments(values.map(\.value)))
        guard table.name == "op" else { return }
        try blobs.move(from: before, to: Data.fromDatabaseValue(row["blob_sha"]), in: db)
        try db.cachedStatement(sql: Self.noting).execute(arguments: [row["seq"]])
    }

    /// What another node has sent or ended has its ticks here when the news of it comes.
    private static let noting = """
        UPDATE op SET sent_tick = iif(first_sent_at IS NULL, NULL, coalesce(sent_tick, tick())),
            ended_tick = iif(ended_at IS NULL, NULL, coalesce(ended_tick, tick())) WHERE seq = ?
        """

    private mutating func remove(_ key: RowBytes, of table: ReplicatedTable, in db: Database) throws {
        if table.name == "op", let sequence = Int64.fromDatabaseValue(key["seq"]) {
            if let operation = try DataStore.fetch(in: db, where: "seq = ?", [sequence]), !operation.state.hasEnded {
                changes.gone.append(operation)
            }
            try blobs.move(from: Self.blob(of: key, in: db), to: nil, in: db)
        }
        try db.cachedStatement(sql: table.deletion).execute(arguments: StatementArguments(key.values.map(\.value)))
        if db.changesCount == 0 { try removeLong(key, of: table, in: db) }
    }

    /// Removes the row whose key is too long for the indexes of the shared database, so that it has a digest there (`IndexedText`).
    private func removeLong(_ key: RowBytes, of table: ReplicatedTable, in db: Database) throws {
        let digests = key.values.compactMap { name, value in
            String.fromDatabaseValue(value).flatMap { IndexedText.mayBeDigest($0) ? (name: name, digest: $0) : nil }
        }
        guard !digests.isEmpty else { return }
        let isLong = digests.map { "length(CAST(\($0.name) AS BLOB)) > \(IndexedText.limit)" }.joined(separator: " AND ")
        let keys = table.keys.joined(separator: ", ")
        for row in try Row.fetchAll(db, sql: "SELECT \(keys) FROM main.\(table.name) WHERE \(isLong)") {
            let own = table.keys.map { row[$0] as DatabaseValue }
            let indexed = own.map { value in String.fromDatabaseValue(value).map { IndexedText.of($0).databaseValue } ?? value }
            guard indexed == key.values.map(\.value) else { continue }
            try db.cachedStatement(sql: table.deletion).execute(arguments: StatementArguments(own))
        }
    }

    private static func blob(of key: RowBytes, in db: Database) throws -> Data? {
        try Data.fetchOne(db.cachedStatement(sql: "SELECT blob_sha FROM op WHERE seq = ?"), arguments: [key["seq"]])
    }

    private func number(_ item: SharedItem, in db: Database) throws {
        guard let row = item.data.flatMap({ RowBytes($0) }) else { return }
        try Self.number(row["name"], row["seq"], in: db)
    }

    static func number(_ table: DatabaseValue, _ last: DatabaseValue, in db: Database) throws {
        try db.execute(sql: "UPDATE sqlite_sequence SET seq = ?2 WHERE name = ?1", arguments: [table, last])
        if db.changesCount == 0 { try db.execute(sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", arguments: [table, last]) }
    }

    private mutating func note(_ item: SharedItem, key: RowBytes) {
        switch item.table {
        case "op", "attempt", "op_dep", "unproved", "fleet_claim":
            if let sequence = Int64.fromDatabaseValue(key["seq"]) { changes.operations.insert(sequence) }
        case "id_map":
            if let id = String.fromDatabaseValue(key["local_id"]) { changes.localIDs.insert(id) }
        case "proved": changes.hasProofs = true
        case "fleet_stale":
            // Of the row: a long place has a digest in the key. One that is gone has been out of date for long.
            guard let row = item.data.flatMap({ RowBytes($0) }), let kind = String.fromDatabaseValue(row["kind"]),
                let place = String.fromDatabaseValue(row["place"]).flatMap({ StalePlace(kind: kind, place: $0) })
            else { return }
            changes.stale.insert(place)
        case "total": changes.hasTakers = String.fromDatabaseValue(key["name"]) != "delivered"
        default: break
        }
    }
}
