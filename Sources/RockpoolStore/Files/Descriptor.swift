// Throwing wrappers of the POSIX calls that durability depends on (docs/storage.md#what-is-stored-where, docs/storage.md#durability).
import Dispatch
import Glibc
import NIOCore

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

// Positioned reads: several readers can share one open file without moving each other's offset (docs/storage.md#what-is-stored-where).
extension Descriptor {
    /// Reads exactly `count` bytes from `offset`.
    /// - Throws: `FileError`; EIO when the file ends earlier.
    borrowing func read(at offset: Int64, count: Int) throws(FileError) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(count)
        while buffer.readableBytes < count {
            let missing = count - buffer.readableBytes
            let position = off_t(offset) + off_t(buffer.readableBytes)
            var code: CInt = 0
            let got = unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: missing) { space in
                let got = unsafe pread(number, space.baseAddress, missing, position)
                code = got < 0 ? errno : EIO
                return max(0, got)
            }
            if got == 0 && code != EINTR { throw FileError(call: "read", path: path, code: code) }
        }
        return buffer
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

// Partial file reads for bodies too large to be held in memory (docs/storage.md#what-is-stored-where).
extension FileBytes {
    /// Reads up to `count` bytes from `offset`; returns none at the end of the file.
    static func read(_ path: String, from offset: Int64, upTo count: Int) throws(FileError) -> [UInt8] {
        let file = try Descriptor(path, O_RDONLY)
        guard lseek(file.number, off_t(offset), SEEK_SET) >= 0 else { throw FileError(call: "lseek", path: path, code: errno) }
        var bytes = [UInt8](repeating: 0, count: count)
        let result = unsafe bytes.withUnsafeMutableBytes { buffer in Result { () throws(FileError) in try unsafe file.read(into: buffer) } }
        return Array(bytes.prefix(try result.get()))
    }
}

/// A failed system call; `code` is its errno.
package struct FileError: Error, Equatable, CustomStringConvertible {
    package var call: String
    package var path: String
    package var code: CInt

    package var description: String { unsafe "\(path): \(String(cString: strerror(code))) (\(call))" }

    /// True if the file system is full or the user's quota is used up.
    package var saysFull: Bool { code == ENOSPC || code == EDQUOT }
}

/// A few serial queues for file I/O, so that neither event loops nor Swift's own pool ever wait for a disk (docs/architecture.md#rules).
/// Work with the same number keeps its order; work with other numbers may run in parallel.
struct FileLanes: Sendable {
    private let queues: [DispatchQueue]

    init(label: String, count: Int = 2) {
        queues = (0..<max(1, count)).map { DispatchQueue(label: "\(label).\($0)") }
    }

    /// Runs `work` on the queue selected by `number`.
    func run<T: Sendable>(_ number: UInt64, _ work: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queues[Int(number % UInt64(queues.count))].async { continuation.resume(with: Result { try work() }) }
        }
    }

    /// Starts `work` without waiting for it.
    func start(_ number: UInt64, _ work: @escaping @Sendable () -> Void) {
        queues[Int(number % UInt64(queues.count))].async(execute: work)
    }
}
