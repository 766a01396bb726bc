// A database without its first page: header and schema are put back, since both are known (sqlite.org/fileformat2.html §1.3, §1.6, §1.8).
import FoundationEssentials
import GRDB
import Glibc
import RockpoolCore

/// Where each table begins is told by the first page only. Roots of an auto-vacuum database lie at its front, in the order in which the
/// schema makes them, and the pointer map on page 2 says which pages are roots: when a new database of the same schema has the same
/// ones, of the same kinds, its schema is this one's.
struct LostFirstPage {
    private static let pageSize = Int(StoreDatabase.pageSize)
    /// What the pointer map calls the root of a tree.
    private static let root: UInt8 = 1

    /// A copy of the damaged file, to be mended.
    let path: String

    /// Tries the schemas of every version, as they are made and as a VACUUM leaves them.
    /// - Parameter isRight: asked of the mended file, since roots alone may be alike.
    /// - Returns: whether one fits; the file is as it was when none does.
    func mend(isRight: () -> Bool) throws -> Bool {
        let sound = try FileBytes.read(path, from: 0, upTo: Self.pageSize)
        let size = FileStatus.of(path)?.size ?? 0
        for version in (1...DataSchema.identity.migrations.count).reversed() {
            for isVacuumed in [false, true] {
                guard let model = try Model(version, isVacuumed, beside: path), try fits(model) else { continue }
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
        /// Page numbers of trees, and whether they are tables with rowids.
        var roots: [Int: Bool] = [:]
        var firstPage: [UInt8]
        /// The pages below the first that the schema lies on, in order.
        var leaves: [[UInt8]] = []

        init?(_ version: Int, _ isVacuumed: Bool, beside path: String) throws {
            let own = path + ".model"
            for suffix in ["", "-wal", "-shm"] { Paths.remove(own + suffix) }
            defer { for suffix in ["", "-wal", "-shm"] { Paths.remove(own + suffix) } }
            let identity = DatabaseIdentity(
                applicationID: DataSchema.identity.applicationID, migrations: Array(DataSchema.identity.migrations[..<version]),
                synchronous: .normal)
            let database = try StoreDatabase(path: own, identity: identity, limit: .mb(8))
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

        /// Where the first page keeps the numbers of its children, the last of them in its header.
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
            // A root may be damaged as well: then it says nothing.
            guard let kind, [2, 5, 10, 13].contains(kind) else { return true }
            return (kind == 5 || kind == 13) == isTable
        }
    }

    /// The schema's pages go behind the last, where they overwrite nothing.
    private func put(_ model: Model, behind size: Int64) throws {
        var model = model
        let count = Int(size) / Self.pageSize
        let file = try Descriptor(path, O_RDWR)
        try file.truncate(to: Int64(count * Self.pageSize))
        for (index, place) in model.childPlaces.enumerated() { model.set(count + 1 + index, at: place) }
        model.set(count + model.leaves.count, at: 28)
        // The size in the header holds only where these two agree; the list of free pages is not needed for reading.
        for place in [24, 92] { model.set(1, at: place) }
        for place in [32, 36] { model.set(0, at: place) }
        try file.write(all: model.firstPage)
        guard lseek(file.number, off_t(count * Self.pageSize), SEEK_SET) >= 0 else {
            throw FileError(call: "lseek", path: path, code: errno)
        }
        for leaf in model.leaves { try file.write(all: leaf) }
    }
}
