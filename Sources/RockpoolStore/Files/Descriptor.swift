// Throwing wrappers of the POSIX calls that durability depends on (docs/storage.md#what-is-stored-where, docs/storage.md#durability).
import Glibc

/// A failed system call; `code` is its errno.
package struct FileError: Error, Equatable, CustomStringConvertible {
    package var call: String
    package var path: String
    package var code: CInt

    package var description: String { unsafe "\(path): \(String(cString: strerror(code))) (\(call))" }

    /// True if the file system is full or the user's quota is used up.
    package var saysFull: Bool { code == ENOSPC || code == EDQUOT }
}

/// An open file that closes itself.
struct Descriptor: ~Copyable {
    let number: CInt
    let path: String

    /// Creates a file for reading and writing with mode 0600; fails when it already exists.
    static func create(_ path: String) throws(FileError) -> Descriptor {
        try Descriptor(path, O_RDWR | O_CREAT | O_EXCL)
    }

    init(_ path: String, _ flags: CInt) throws(FileError) {
        self.path = path
        number = unsafe Glibc.open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw FileError(call: "open", path: path, code: errno) }
    }

    deinit { _ = Glibc.close(number) }

    /// Preallocates `length` bytes, so that a full disk is detected before the data arrives. File systems without preallocation are
    /// ignored.
    borrowing func allocate(_ length: Int64) throws(FileError) {
        let code = posix_fallocate(number, 0, off_t(length))
        guard code == 0 || code == EOPNOTSUPP || code == EINVAL else { throw FileError(call: "fallocate", path: path, code: code) }
    }

    borrowing func truncate(to length: Int64) throws(FileError) {
        guard ftruncate(number, off_t(length)) == 0 else { throw FileError(call: "ftruncate", path: path, code: errno) }
    }

    borrowing func write(_ bytes: UnsafeRawBufferPointer) throws(FileError) {
        var rest = unsafe bytes[...]
        while unsafe !rest.isEmpty {
            let count = unsafe Glibc.write(number, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0 {
                if errno == EINTR { continue }
                throw FileError(call: "write", path: path, code: errno)
            }
            unsafe rest = unsafe rest.dropFirst(count)
        }
    }

    borrowing func write(all bytes: [UInt8]) throws(FileError) {
        let result = unsafe bytes.withUnsafeBytes { buffer in Result { () throws(FileError) in try unsafe write(buffer) } }
        try result.get()
    }

    /// Reads up to `buffer.count` bytes; returns 0 at the end of the file.
    borrowing func read(into buffer: UnsafeMutableRawBufferPointer) throws(FileError) -> Int {
        while true {
            let count = unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            if errno != EINTR { throw FileError(call: "read", path: path, code: errno) }
        }
    }

    /// Calls fsync. A failure means that the bytes are lost; the fsync is never retried (docs/storage.md#durability).
    borrowing func synchronize() throws(FileError) {
        guard fsync(number) == 0 else { throw FileError(call: "fsync", path: path, code: errno) }
    }
}

/// Operations on paths and directories.
enum Paths {
    /// Creates a directory with mode 0700 unless it exists.
    static func makeDirectory(_ path: String) throws(FileError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileError(call: "mkdir", path: path, code: errno) }
    }

    /// Creates a directory and all its missing parents.
    static func makeDirectories(_ path: String) throws(FileError) {
        if FileStatus.of(path)?.isDirectory == true { return }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex { try makeDirectories(String(path[..<slash])) }
        try makeDirectory(path)
    }

    static func move(_ path: String, to target: String) throws(FileError) {
        guard unsafe Glibc.rename(path, target) == 0 else { throw FileError(call: "rename", path: path, code: errno) }
    }

    /// - Returns: true if something was removed.
    @discardableResult
    static func remove(_ path: String) -> Bool { unsafe Glibc.unlink(path) == 0 }

    /// Makes the names in a directory survive a power failure (fsync of the directory).
    static func synchronizeDirectory(_ path: String) throws(FileError) {
        // `/.` also resolves a symbolic link: nothing inside a store is one, but the directory itself may be (systemd's DynamicUser).
        try Descriptor(path + "/.", O_RDONLY | O_DIRECTORY).synchronize()
    }

    /// Returns the names in a directory, unordered; none when the directory cannot be read.
    static func names(in path: String) -> [String] {
        guard let directory = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { unsafe String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}

/// Reads of whole small files.
enum FileBytes {
    static func read(_ path: String) throws(FileError) -> [UInt8] {
        let file = try Descriptor(path, O_RDONLY)
        var bytes = [UInt8](repeating: 0, count: Int(clamping: FileStatus.of(descriptor: file.number)?.size ?? 0))
        var filled = 0
        while filled < bytes.count {
            let result = unsafe bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(FileError) in try unsafe file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])) }
            }
            let count = try result.get()
            if count == 0 { break }
            filled += count
        }
        return Array(bytes.prefix(filled))
    }
}
