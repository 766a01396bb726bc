// What the jobs of a transaction have changed, as the shared database gets it (docs/fleet.md#shared).
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// The newest versions of changed rows, as many as are sent at once.
struct Shipment {
    var items: [SharedItem] = []
    /// The keys of rows that have another key now.
    var replaced: [[UInt8]] = []
    /// The operations that are no longer in flight.
    var released: [Int64] = []
    var claimed: [SharedClaim] = []
    /// The names of bodies in files that must be shared, and of those that are deleted.
    var bodies: [Data] = []
    var goneBodies: [Data] = []
    /// Lines of the log about operations that stay here, which are not sent.
    var ownLines: [Int64] = []
    private let clockOffset: Int64
    private let delivered: Int64

    private static let most = 500
    private static let mostBytes = Int.mib(4)

    private init(clockOffset: Int64, delivered: Int64) { (self.clockOffset, self.delivered) = (clockOffset, delivered) }

    /// Reads the rows that `fleet_change` names, in their order. No part of a row comes twice in a shipment.
    /// - Parameter delivered: the count of deliveries that the shared database has.
    static func parts(
        in db: Database, tables: [ReplicatedTable], clockOffset: Int64, delivered: Int64, _ send: (Shipment) throws -> Void
    ) throws {
        let known = Dictionary(uniqueKeysWithValues: tables.map { ($0.name, $0) })
        var numbered: Set<String> = []
        let noted = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT tbl, part, k1, k2, k3 FROM temp.fleet_change GROUP BY 1, 2, 3, 4, 5 ORDER BY min(n)"))
        var shipment = Shipment(clockOffset: clockOffset, delivered: delivered)
        while let row = try noted.next() {
            let (name, part): (String, Int) = (row["tbl"], row["part"])
            let marks = (0..<3).map { row[$0 + 2] as DatabaseValue }
            if name == "blob" { try shipment.addBody(marks[0], in: db) }
            guard let table = known[name] else { continue }
            try shipment.add(table, part: part, marks: Array(marks.prefix(table.keys.count)), in: db)
            if ReplicatedTable.numbered.contains(name) { numbered.insert(name) }
            guard shipment.isFull else { continue }
            try send(shipment)
            shipment = Shipment(clockOffset: clockOffset, delivered: delivered)
        }
        try shipment.addNumbers(of: numbered, in: db)
        try send(shipment)
    }

    private var bytes = 0
    private var isFull: Bool { items.count >= Self.most || bytes >= Self.mostBytes }

    /// The items, each part of a row once.
    var distinct: [SharedItem] {
        var seen: Set<[UInt8]> = []
        return items.filter { seen.insert([UInt8(truncatingIfNeeded: $0.part)] + Array($0.table.utf8) + [0] + $0.key).inserted }
    }

    private mutating func addNumbers(of tables: Set<String>, in db: Database) throws {
        for name in ReplicatedTable.numbered where tables.contains(name) {
            let last = try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = ?", arguments: [name]) ?? 0
            // A row with the last number says it by itself. Few versions of a row that every transaction would change: while another
            // program keeps its snapshot, PostgreSQL visits all of them.
            let key = ReplicatedTable.number(of: name)
            let shared = "SELECT max(\(key)) FROM \(name) WHERE \(key) < \(HeldOperations.first)"
            guard try Int64.fetchOne(db, sql: shared) != last else { continue }
            let row = RowBytes([("name", name.databaseValue), ("seq", last.databaseValue)])
            items.append(SharedItem(table: "sqlite_sequence", key: Array(name.utf8), part: 0, data: row.encoded))
        }
    }

    private mutating func add(_ table: ReplicatedTable, part: Int, marks: [DatabaseValue], in db: Database) throws {
        // The row has the whole key, too.
        var key = RowBytes(
            zip(table.keys, marks).map { name, mark in
                (name: name, value: String.fromDatabaseValue(mark).map { IndexedText.of($0).databaseValue } ?? mark)
            })
        let number = Int64.fromDatabaseValue(marks[0])
        // A number of the held range is never shared, and nothing that belongs to one.
        if marks.contains(where: HeldOperations.isHeld) { return }
        let found = try Row.fetchOne(db.cachedStatement(sql: table.selection(ofPart: part)), arguments: StatementArguments(marks))
        var row = found.map { row in
            table.moving(RowBytes(table.columns(ofPart: part).enumerated().map { ($1, row[$0]) }), by: clockOffset)
        }
        if let owner = ReplicatedTable.owners[table.name], let row, HeldOperations.isHeld(row[owner]) {
            if table.name == "sync_log", let number { ownLines.append(number) }
            return
        }
        if table.name == "op", part == 0 { row?.forget(ReplicatedTable.references, where: HeldOperations.isHeld) }
        if table.name == "total", let row { turn(&key, of: row) }
        var item = SharedItem(table: table.name, key: key.encoded, part: part, data: row?.encoded)
        bytes += item.data?.count ?? 0
        if table.name == "op", part == 0, let row {
            item.operation = SharedOperation(
                id: String.fromDatabaseValue(row["id"]) ?? "", upstream: String.fromDatabaseValue(row["upstream"]) ?? "",
                principal: String.fromDatabaseValue(row["principal"]), clientKey: String.fromDatabaseValue(row["client_key"]),
                state: String.fromDatabaseValue(row["state"]) ?? "")
        }
        items.append(item)
        // With a row, its bodies are gone.
        if row == nil, part == 0 {
            items += table.heavy.indices.map { SharedItem(table: table.name, key: key.encoded, part: $0 + 1) }
        }
        if table.name == "fleet_claim", let number { try addClaim(of: number, row, in: db) }
    }

    /// The count of deliveries changes with each of them: its row gets another key now and then. While another program keeps its snapshot,
    /// PostgreSQL visits every version that a key has had since. The key has a column more, which other nodes do not look at.
    private mutating func turn(_ key: inout RowBytes, of row: RowBytes) {
        guard String.fromDatabaseValue(key["name"]) == "delivered", let count = Int64.fromDatabaseValue(row["value"]) else { return }
        func turned(_ count: Int64) -> RowBytes { RowBytes(key.values + [("turn", (count / Self.turn).databaseValue)]) }
        let (old, new) = (turned(delivered), turned(count))
        if old.encoded != new.encoded { replaced.append(old.encoded) }
        key = new
    }

    private static let turn: Int64 = 64

    private mutating func addClaim(of sequence: Int64, _ row: RowBytes?, in db: Database) throws {
        guard let row, let node = String.fromDatabaseValue(row["node"]), let epoch = Int64.fromDatabaseValue(row["epoch"]),
            let operation = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT upstream, lane FROM op WHERE seq = ?"), arguments: [sequence])
        else { return released.append(sequence) }
        claimed.append(SharedClaim(sequence: sequence, upstream: operation[0], lane: operation[1], node: node, epoch: epoch))
    }

    private mutating func addBody(_ mark: DatabaseValue, in db: Database) throws {
        guard let hash = Data.fromDatabaseValue(mark) else { return }
        let key = RowBytes([("sha", mark)]).encoded
        guard let length = try Int64.fetchOne(db, sql: "SELECT length FROM blob WHERE sha = ?", arguments: [hash]) else {
            goneBodies.append(hash)
            return items.append(SharedItem(table: "blob", key: key, part: 0))
        }
        bodies.append(hash)
        let row = RowBytes([("sha", mark), ("length", length.databaseValue)])
        items.append(SharedItem(table: "blob", key: key, part: 0, data: row.encoded))
    }
}

// MARK: - Bodies in files

/// Reads and writes the files of bodies for the shared database.
struct BlobExchange: Sendable {
    let directory: String
    let footprint: Footprint
    let log: SharedLog
    private static let piece = Int.mib(1)

    private func path(_ hash: Data) -> String { "\(directory)/blobs/\(Digest.hex(hash))" }

    /// Shares bodies before the transaction that names them, for which the other nodes wait.
    /// - Throws: `SharedLog.Absence`.
    func shareAhead(_ hashes: [Data]) throws {
        for hash in hashes {
            do {
                guard try !isShared(hash, asking: log.ask) else { continue }
                try log.ahead { try share(hash) }
            } catch let absence as SharedLog.Absence {
                throw absence
            } catch {
                // What is wrong with it shows in its transaction.
                continue
            }
        }
    }

    /// True if every piece is there: pieces are added by several nodes, and removed.
    private func isShared(_ hash: Data, asking ask: (String, [PostgreSQLValue]) throws -> [[[UInt8]?]]) throws -> Bool {
        guard let length = FileStatus.of(path(hash))?.size else { return false }
        let sql = "SELECT count(*) >= $2 FROM rockpool.blob WHERE sha = $1"
        let count = max(1, (length + Int64(Self.piece) - 1) / Int64(Self.piece))
        return try ask(sql, [.bytes(Array(hash)), .number(count)]).first?.first??.first == 1
    }

    /// Shares a body that is not shared yet, before the row that names it.
    func share(_ hash: Data) throws {
        guard try !isShared(hash, asking: { try log.run($0, $1) }) else { return }
        var (offset, number): (Int, Int64) = (0, 0)
        repeat {
            let bytes = try FileBytes.read(path(hash), from: Int64(offset), upTo: Self.piece)
            guard !bytes.isEmpty || number == 0 else { break }
            try log.run(
                "INSERT INTO rockpool.blob VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                [.bytes(Array(hash)), .number(number), .bytes(bytes)])
            (offset, number) = (offset + bytes.count, number + 1)
            if bytes.count < Self.piece { break }
        } while true
    }

    func unshare(_ hash: Data) throws { try log.run("DELETE FROM rockpool.blob WHERE sha = $1", [.bytes(Array(hash))]) }

    /// Writes the file of a body from its pieces, durably, then its row.
    func take(_ item: SharedItem, in db: Database) throws {
        guard let row = item.data.flatMap({ RowBytes($0) }), let hash = Data.fromDatabaseValue(row["sha"]) else { return }
        let target = path(hash)
        if FileStatus.of(target) == nil {
            let temporary = "\(directory)/blobs/tmp/fleet"
            Paths.remove(temporary)
            let file = try Descriptor.create(temporary)
            for number in Int64(0)... {
                let rows = try log.run(
                    "SELECT data FROM rockpool.blob WHERE sha = $1 AND i = $2", [.bytes(Array(hash)), .number(number)])
                guard let piece = rows.first?.first ?? nil else { break }
                try file.write(all: piece)
            }
            try file.synchronize()
            try Paths.move(temporary, to: target)
            try Paths.synchronizeDirectory("\(directory)/blobs")
            footprint.addFiles(FileStatus.of(target)?.allocated ?? 0)
        }
        try db.execute(
            sql: "INSERT INTO blob (sha, length, refs) VALUES (?, ?, 0) ON CONFLICT DO NOTHING", arguments: [hash, row["length"]])
    }

    func remove(_ item: SharedItem, in db: Database) throws {
        guard let key = RowBytes(item.key) else { return }
        try db.execute(sql: "DELETE FROM blob WHERE sha = ? AND refs <= 0", arguments: [key["sha"]])
    }

    /// Counts the references as the triggers of the schema would.
    func move(from old: Data?, to new: Data?, in db: Database) throws {
        guard old != new else { return }
        if let new { try db.execute(sql: "UPDATE blob SET refs = refs + 1 WHERE sha = ?", arguments: [new]) }
        if let old { try db.execute(sql: "UPDATE blob SET refs = max(0, refs - 1) WHERE sha = ?", arguments: [old]) }
    }
}
