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

/// Conversion of a SHA-256 digest to and from 64 hexadecimal digits.
enum Digest {
    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns nil when the text is not 64 hexadecimal digits.
    static func bytes(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count == 64 else { return nil }
        return stride(from: 0, to: 64, by: 2).reduce(into: [UInt8]?([])) { bytes, at in
            guard let byte = UInt8(String(decoding: digits[at..<at + 2], as: UTF8.self), radix: 16) else { return bytes = nil }
            bytes?.append(byte)
        }
    }

    /// Returns the hash of a whole file.
    static func ofFile(_ path: String) throws(FileError) -> [UInt8] {
        let file = try Descriptor(path, O_RDONLY)
        var hash = SHA256()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 16)
        defer { unsafe buffer.deallocate() }
        while true {
            let count = try unsafe file.read(into: buffer)
            if count == 0 { return Array(hash.finalize()) }
            unsafe hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }
}

extension [UInt8] {
    /// The bytes as a SQLite BLOB.
    var data: Data { Data(self) }
}
