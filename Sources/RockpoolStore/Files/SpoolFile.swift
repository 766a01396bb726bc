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

/// The state of a temporary file that is sealed while it comes: whole chunks are in the file, which is its owner's, the bytes after them in
/// memory (`storage.encrypt`).
struct SealedSpool: Sendable {
    private let chunks: SealedChunks
    /// Whole chunks in the file.
    private var written: Int64 = 0
    /// The bytes after the last whole chunk; they stay readable here after `finish`.
    private var rest: [UInt8] = []
    private var isFinished = false

    init(_ seal: BodySeal) { chunks = SealedChunks(seal) }

    /// The first bytes of the file.
    var header: [UInt8] { chunks.header }

    /// Takes the next bytes of the body.
    mutating func append(_ bytes: UnsafeRawBufferPointer, write: ([UInt8]) throws -> Void) throws {
        unsafe rest += bytes
        var taken = 0
        while rest.count - taken >= SealedChunks.chunk {
            try write(try chunks.seal(Array(rest[taken..<taken + SealedChunks.chunk]), number: written))
            written += 1
            taken += SealedChunks.chunk
        }
        rest.removeFirst(taken)
    }

    /// Writes the last, shorter chunk. Nothing happens the second time.
    mutating func finish(write: ([UInt8]) throws -> Void) throws {
        guard !isFinished else { return }
        isFinished = true
        if !rest.isEmpty { try write(try chunks.seal(rest, number: written)) }
    }

    /// Bytes of the body that were appended before.
    /// - Parameter read: gives bytes of the file.
    func read(_ range: Range<Int64>, read: (_ offset: Int64, _ count: Int) throws -> ByteBuffer) throws -> ByteBuffer {
        let start = written * Int64(SealedChunks.chunk)
        var bytes = try chunks.read(range.clamped(to: 0..<start), of: start, read)
        let wanted = range.clamped(to: start..<start + Int64(rest.count))
        bytes.writeBytes(rest[Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)])
        return bytes
    }
}
