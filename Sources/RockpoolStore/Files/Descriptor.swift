// The few POSIX calls that durability hangs on, as functions that throw (storage.md §3, §5).
import Glibc

/// A call failed; `code` is errno.
package struct FileError: Error, Equatable, CustomStringConvertible {
    package var call: String
    package var path: String
    package var code: CInt

    package var description: String { unsafe "\(path): \(String(cString: strerror(code))) (\(call))" }

    /// No room on the file system, or none left for this user.
    package var saysFull: Bool { code == ENOSPC || code == EDQUOT }
}

/// An open file that closes itself.
struct Descriptor: ~Copyable {
    let number: CInt
    let path: String

    /// Opens for writing and reading a file that must not exist yet, readable by nobody else.
    static func create(_ path: String) throws(FileError) -> Descriptor {
        try Descriptor(path, O_RDWR | O_CREAT | O_EXCL)
    }

    init(_ path: String, _ flags: CInt) throws(FileError) {
        self.path = path
        number = unsafe Glibc.open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard number >= 0 else { throw FileError(call: "open", path: path, code: errno) }
    }

    deinit { _ = Glibc.close(number) }

    /// Makes room for `length` bytes, so that a full disk shows before they come. File systems that cannot are let off.
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

    /// Reads up to `buffer.count` bytes; 0 at the end.
    borrowing func read(into buffer: UnsafeMutableRawBufferPointer) throws(FileError) -> Int {
        while true {
            let count = unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            if errno != EINTR { throw FileError(call: "read", path: path, code: errno) }
        }
    }

    /// A failure means that the bytes are lost: it is never tried again (storage.md §5).
    borrowing func synchronize() throws(FileError) {
        guard fsync(number) == 0 else { throw FileError(call: "fsync", path: path, code: errno) }
    }
}

/// Names in directories.
enum Paths {
    /// Makes a directory that only we may enter, unless it is there.
    static func makeDirectory(_ path: String) throws(FileError) {
        guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST else { throw FileError(call: "mkdir", path: path, code: errno) }
    }

    /// The same with every directory above it.
    static func makeDirectories(_ path: String) throws(FileError) {
        if FileStatus.of(path)?.isDirectory == true { return }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex { try makeDirectories(String(path[..<slash])) }
        try makeDirectory(path)
    }

    static func move(_ path: String, to target: String) throws(FileError) {
        guard unsafe Glibc.rename(path, target) == 0 else { throw FileError(call: "rename", path: path, code: errno) }
    }

    /// Whether there was something to remove.
    @discardableResult
    static func remove(_ path: String) -> Bool { unsafe Glibc.unlink(path) == 0 }

    /// Makes names in a directory survive a power cut.
    static func synchronizeDirectory(_ path: String) throws(FileError) {
        // What a link leads to, too: nothing in a directory is one, the directory itself may be (systemd's DynamicUser).
        try Descriptor(path + "/.", O_RDONLY | O_DIRECTORY).synchronize()
    }

    /// Names in a directory, in no order; none when it cannot be read.
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

/// Small files as a whole.
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
