// The lock that restricts a store to one server: an advisory lock with the holder's pid (docs/storage.md#directories).
import Glibc
import NIOCore

/// The lock on `state_dir/lock`, held during this object's lifetime.
package final class StoreLock: Sendable {
    private let file: Descriptor

    private init(_ file: consuming Descriptor) { self.file = file }

    /// Releases the lock, as deinit does.
    package func release() { flock(file.number, LOCK_UN) }

    /// Takes the lock without changing its file; nil when there is no file, and so no possible holder.
    /// - Throws: `.locked` with the holder's pid.
    static func toLook(_ directory: String) throws -> StoreLock? {
        let path = "\(directory)/lock"
        guard FileStatus.of(path) != nil else { return nil }
        let file = try Descriptor(path, O_RDONLY)
        try take(file)
        return StoreLock(file)
    }

    private static func take(_ file: borrowing Descriptor) throws(DataStoreError) {
        if flock(file.number, LOCK_EX | LOCK_NB) == 0 { return }
        let pid = Int32(String(decoding: (try? FileBytes.read(file.path)) ?? [], as: UTF8.self).prefix { $0.isNumber })
        throw .locked(pid: pid.flatMap { kill($0, 0) == 0 || errno != ESRCH ? $0 : nil })
    }

    /// The longest time for which a lock is awaited: a command that reads the store has it for a moment.
    private static let patience = Duration.seconds(5)
    /// The same where a living process has written its pid, which is likely a server.
    private static let shortPatience = Duration.seconds(2)

    private static func takeSoon(_ file: borrowing Descriptor) throws(DataStoreError) {
        let began = ContinuousClock.now
        while true {
            do { return try take(file) } catch {
                guard case .locked(let pid) = error, ContinuousClock.now - began < (pid == nil ? patience : shortPatience) else {
                    throw error
                }
                usleep(20_000)
            }
        }
    }

    /// Takes the lock and writes this process's pid into it. Blocks for up to 5 s while another process has the lock.
    /// - Throws: `.locked` with the holder's pid, nil if it is not known; `.unavailable` when the file cannot be opened.
    package static func acquire(_ directory: String) throws(DataStoreError) -> StoreLock {
        let path = "\(directory)/lock"
        do {
            let file = try Descriptor(path, O_RDWR | O_CREAT)
            try takeSoon(file)
            ftruncate(file.number, 0)
            try file.write(all: Array("\(getpid())\n".utf8))
            return StoreLock(file)
        } catch let error as DataStoreError {
            throw error
        } catch let error as FileError where error.code == EACCES {
            throw .unavailable("\(directory) belongs to another user; run this as that user")
        } catch {
            throw .unavailable("cannot lock the state directory: \(error)")
        }
    }
}

// Why the store of a directory would not open, as its files show without being opened (docs/storage.md#faults).
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
