// Repair of a database without its first page: header and schema are restored, since both are known (sqlite.org/fileformat2.html §1.3,
// §1.6, §1.8).
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// Only the first page records where each table begins. The roots of an auto-vacuum database are its first pages, in the order in which the
/// schema creates them, and the pointer map on page 2 marks root pages. So when a new database of a schema has the same roots of the same
/// kinds, the damaged database has that schema.
struct LostFirstPage {
    private static let pageSize = Int(StoreDatabase.pageSize)
    /// The type of a root page in the pointer map.
    private static let root: UInt8 = 1

    /// A copy of the damaged file, which is repaired in place.
    let path: String

    /// Tries the schema of every version, both freshly created and after a VACUUM, the newest with and without the indexes of open writes.
    /// - Parameter isRight: checks the repaired file, since different schemas may have the same roots.
    /// - Returns: true if one fits; otherwise the file is unchanged.
    func mend(isRight: () -> Bool) throws -> Bool {
        let sound = try FileBytes.read(path, from: 0, upTo: Self.pageSize)
        let size = FileStatus.of(path)?.size ?? 0
        for version in (1...DataSchema.identity.migrations.count).reversed() {
            // The indexes of open writes came without a version.
            let isNewest = version == DataSchema.identity.migrations.count
            for (isIndexed, isVacuumed) in [(true, false), (true, true), (false, false), (false, true)] where isNewest || !isIndexed {
                guard let model = try Model(version, isIndexed, isVacuumed, beside: path), try fits(model) else { continue }
                try put(model, behind: size)
                if isRight() { return true }
                let file = try Descriptor(path, O_RDWR)
                try file.write(all: sound)
                try file.truncate(to: size)
            }
        }
        return false
    }

    /// A new, empty database of a schema.
    private struct Model {
        /// Page numbers of roots; true for tables with rowids.
        var roots: [Int: Bool] = [:]
        var firstPage: [UInt8]
        /// The pages below the first that contain the schema, in order.
        var leaves: [[UInt8]] = []

        init?(_ version: Int, _ isIndexed: Bool, _ isVacuumed: Bool, beside path: String) throws {
            let own = path + ".model"
            for suffix in ["", "-wal", "-shm"] { Paths.remove(own + suffix) }
            defer { for suffix in ["", "-wal", "-shm"] { Paths.remove(own + suffix) } }
            let identity = DatabaseIdentity(
                applicationID: DataSchema.identity.applicationID, migrations: Array(DataSchema.identity.migrations[..<version]),
                synchronous: .normal)
            let database = try StoreDatabase(path: own, identity: identity, limit: .mb(8))
            if isIndexed { try database.pool.writeWithoutTransaction { try DataSchema.indexOpenWrites(in: $0) } }
            if isVacuumed { try database.pool.writeWithoutTransaction { try $0.execute(sql: "VACUUM") } }
            let rows = try database.pool.writeWithoutTransaction { db in
                _ = try db.checkpoint(.truncate)
                return try Row.fetchAll(
                    db,
                    sql: """
                        SELECT rootpage, type = 'table' AND coalesce((SELECT wr = 0 FROM pragma_table_list AS l WHERE l.name = m.name), 1)
                        FROM sqlite_master AS m WHERE rootpage > 1
                        """)
            }
            try database.pool.close()
            for row in rows {
                var columns = RowReader(row)
                roots[try columns.next()] = try columns.next(Bool.self)
            }
            firstPage = try FileBytes.read(own, from: 0, upTo: pageSize)
            // An interior page: its children are the leaves.
            guard firstPage.count == pageSize, firstPage[100] == 5 else { return nil }
            for place in childPlaces {
                let number = Int(number(at: place))
                leaves.append(try FileBytes.read(own, from: Int64((number - 1) * pageSize), upTo: pageSize))
            }
        }

        /// The offsets of the child page numbers in the first page; the last is in its header.
        var childPlaces: [Int] {
            let count = Int(firstPage[103]) << 8 | Int(firstPage[104])
            return (0..<count).map { Int(firstPage[112 + 2 * $0]) << 8 | Int(firstPage[113 + 2 * $0]) } + [108]
        }

        func number(at place: Int) -> UInt32 { firstPage[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) } }

        mutating func set(_ number: Int, at place: Int) {
            for (offset, shift) in [24, 16, 8, 0].enumerated() { firstPage[place + offset] = UInt8(truncatingIfNeeded: number >> shift) }
        }
    }

    private func fits(_ model: Model) throws -> Bool {
        let map = try FileBytes.read(path, from: Int64(Self.pageSize), upTo: Self.pageSize)
        guard map.count == Self.pageSize else { return false }
        let roots = stride(from: 0, to: Self.pageSize - 4, by: 5).filter { map[$0] == Self.root }.map { $0 / 5 + 3 }
        guard Set(roots) == Set(model.roots.keys) else { return false }
        return try model.roots.allSatisfy { page, isTable in
            let kind = try FileBytes.read(path, from: Int64((page - 1) * Self.pageSize), upTo: 1).first
            // A root page may be damaged as well; then it proves nothing.
            guard let kind, [2, 5, 10, 13].contains(kind) else { return true }
            return (kind == 5 || kind == 13) == isTable
        }
    }

    /// Writes the first page and appends the schema's leaf pages behind the last page, so that they overwrite nothing.
    private func put(_ model: Model, behind size: Int64) throws {
        var model = model
        let count = Int(size) / Self.pageSize
        let file = try Descriptor(path, O_RDWR)
        try file.truncate(to: Int64(count * Self.pageSize))
        for (index, place) in model.childPlaces.enumerated() { model.set(count + 1 + index, at: place) }
        model.set(count + model.leaves.count, at: 28)
        // The size in the header is valid only if these two fields agree; the list of free pages is not needed for reading.
        for place in [24, 92] { model.set(1, at: place) }
        for place in [32, 36] { model.set(0, at: place) }
        try file.write(all: model.firstPage)
        guard lseek(file.number, off_t(count * Self.pageSize), SEEK_SET) >= 0 else {
            throw FileError(call: "lseek", path: path, code: errno)
        }
        for leaf in model.leaves { try file.write(all: leaf) }
    }
}
