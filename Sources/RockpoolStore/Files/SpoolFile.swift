// A file being written under `tmp/` and later renamed to a body or a blob (docs/storage.md#what-is-stored-where).
import Crypto
import FoundationEssentials
import Glibc
import NIOCore
import Synchronization

/// A temporary file. Unlinked on deinit unless `release()` was called.
final class SpoolFile: Sendable {
    private let file: Descriptor
    private let isKept = Mutex(false)
    private let sealed: Mutex<SealedSpool?>
    /// True when the file holds the body sealed.
    let isSealed: Bool

    var path: String { file.path }

    /// - Parameters:
    ///   - expectedLength: the length of the body, when known; its file is preallocated.
    ///   - seal: seals the body as it comes; nil writes it as it is.
    init(path: String, expectedLength: Int64?, seal: BodySeal? = nil) throws(FileError) {
        file = try Descriptor.create(path)
        isSealed = seal != nil
        let spool = seal.map { SealedSpool($0) }
        sealed = Mutex(spool)
        if let expectedLength, expectedLength > 0 { try file.allocate(size(of: expectedLength)) }
        if let spool { try file.write(all: spool.header) }
    }

    /// Bytes of the file for a body of `length` bytes.
    private func size(of length: Int64) -> Int64 { isSealed ? SealedChunks.size(of: length) : length }

    /// - Throws: `FileError`.
    func append(_ bytes: UnsafeRawBufferPointer) throws {
        guard isSealed else { return try unsafe file.write(bytes) }
        try sealed.withLock { try unsafe $0?.append(bytes) { try file.write(all: $0) } }
    }

    /// No more bytes come: a sealed file gets its last chunk.
    /// - Throws: `FileError`.
    func finish() throws { try sealed.withLock { try $0?.finish { try file.write(all: $0) } } }

    /// Exactly `count` bytes that were appended before. - Throws: `FileError`, `SealBroken`.
    func read(at offset: Int64, count: Int) throws -> ByteBuffer {
        guard let spool = sealed.withLock(\.self) else { return try file.read(at: offset, count: count) }
        return try spool.read(offset..<offset + Int64(count)) { try file.read(at: $0, count: $1) }
    }

    /// Truncates preallocated space that was not written. - Parameter length: of the body.
    func truncate(to length: Int64) throws(FileError) { try file.truncate(to: size(of: length)) }

    func synchronize() throws(FileError) { try file.synchronize() }

    /// Length in bytes.
    var length: Int64 { FileStatus.of(descriptor: file.number)?.size ?? 0 }

    /// Allocated bytes on the disk.
    var allocated: Int64 { FileStatus.of(descriptor: file.number)?.allocated ?? 0 }

    /// Keeps the file on deinit, because it was renamed or is already gone.
    func release() { isKept.withLock { $0 = true } }

    /// Unlinks the file unless it was released. Its content stays readable until this object is deallocated.
    func discard() {
        isKept.withLock { isKept in
            if !isKept { Paths.remove(path) }
            isKept = true
        }
    }

    deinit { discard() }
}
