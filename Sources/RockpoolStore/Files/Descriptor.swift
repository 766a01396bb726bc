// Throwing wrappers of the POSIX calls that durability depends on (docs/storage.md#what-is-stored-where, docs/storage.md#durability).
import Glibc

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
