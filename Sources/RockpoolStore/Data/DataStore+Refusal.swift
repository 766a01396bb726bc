// Why the store of a directory would not open, as its files show without being opened (docs/storage.md#faults).
import Glibc
import NIOCore

extension DataStore {
    /// Returns true if the database has lost its content: it is missing beside bodies of writes, or empty beside the key that is created
    /// after its first page. SQLite would silently start with an empty database.
    package static func isLost(in directory: String) -> Bool {
        guard let size = FileStatus.of("\(directory)/data.sqlite")?.size else {
            return Paths.names(in: "\(directory)/blobs").contains { $0 != "tmp" }
        }
        return size == 0 && FileStatus.of("\(directory)/install-key") != nil
    }

    /// Returns true if there is no database in a directory that was in use, or an empty one.
    package static func lacksDatabase(in directory: String) -> Bool {
        isLost(in: directory)
            || FileStatus.of("\(directory)/data.sqlite") == nil && FileStatus.of(LiveWriteFile.path(directory)) != nil
    }

    /// Returns the error with which the database would be refused, as far as its first page shows; nil if nothing there is wrong.
    package static func refusal(in directory: String) -> DataStoreError? {
        let path = "\(directory)/data.sqlite"
        if lacksDatabase(in: directory) { return .lost(path: path) }
        guard let size = FileStatus.of(path)?.size, size > 0, let file = try? Descriptor(path, O_RDONLY) else { return nil }
        guard size >= 100, let first = try? file.read(at: 0, count: 100) else {
            return .corrupt(path: path, detail: "it is shorter than a page")
        }
        let head = Array(first.readableBytesView)
        guard head.starts(with: "SQLite format 3\0".utf8) else { return .corrupt(path: path, detail: "it is no SQLite database") }
        let number = { (offset: Int) in head[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        let (version, identifier, identity) = (number(60), number(68), DataSchema.identity)
        guard identifier == Int(UInt32(bitPattern: identity.applicationID)) || identifier == 0 && version == 0 else {
            return .corrupt(path: path, detail: "it is a database of another program")
        }
        return version > identity.migrations.count ? .newerSchema(path: path, found: version, known: identity.migrations.count) : nil
    }
}
