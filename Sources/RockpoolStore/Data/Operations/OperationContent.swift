// The bytes of an operation's body. A body in a file is compared with its name whenever it is read (docs/outbox.md#files).
import Crypto
import Glibc
package import NIOCore
import RockpoolCore

/// The content of an operation's body, ready for sending.
package enum OperationContent: Sendable {
    case bytes([UInt8])
    case stored(StoredContent)

    /// Returns the whole content. - Throws: `DamagedBody`, `FileError`.
    package func bytes() throws -> [UInt8] {
        switch self {
        case .bytes(let bytes): return bytes
        case .stored(let content):
            var (reader, bytes) = (content.reader(), [UInt8]())
            bytes.reserveCapacity(Int(clamping: content.length))
            while case let piece = try reader.next(.mib(1)), piece.readableBytes > 0 { bytes += piece.readableBytesView }
            return bytes
        }
    }
}

/// A body in a file of `blobs/`, plain or sealed.
package struct StoredContent: Sendable {
    /// Bytes of the body.
    package let length: Int64
    private let name: String
    private let path: String
    private let seal: BodySeal

    /// - Throws: `DamagedBody` when the file is missing or has another length.
    init(name: String, length: Int64, path: String, seal: BodySeal) throws {
        (self.name, self.length, self.path, self.seal) = (name, length, path, seal)
        try checkSize()
    }

    /// Returns a reader at the start of the body.
    package func reader() -> StoredContentReader { StoredContentReader(self) }

    fileprivate func read(_ range: Range<Int64>) throws -> ByteBuffer {
        do {
            try checkSize()
            if FileStatus.of(path)?.size != length { return try SealedFile(path, seal).read(range) }
            return try Descriptor(path, O_RDONLY).read(at: range.lowerBound, count: range.count)
        } catch is SealBroken {
            throw DamagedBody(name: name, what: .changed)
        }
    }

    fileprivate func check(_ hash: [UInt8]) throws(DamagedBody) {
        guard let name = Digest.bytes(name), name == hash || seal.isName(name, of: hash) else {
            throw DamagedBody(name: name, what: .changed)
        }
    }

    private func checkSize() throws(DamagedBody) {
        guard let size = FileStatus.of(path)?.size else { throw DamagedBody(name: name, what: .missing) }
        guard SealedChunks.isSize(size, of: length) else { throw DamagedBody(name: name, what: .changed) }
    }
}

/// Reads a stored body from its start. The last bytes are given out only if the whole is what its name says.
package struct StoredContentReader: Sendable {
    private let content: StoredContent
    private var hash = SHA256()
    private var offset: Int64 = 0

    fileprivate init(_ content: StoredContent) { self.content = content }

    /// Returns the next bytes, at most `count`; empty at the end. - Throws: `DamagedBody`, `FileError`.
    package mutating func next(_ count: Int) throws -> ByteBuffer {
        let end = min(offset.addedClamped(Int64(count)), content.length)
        guard end > offset else { return ByteBuffer() }
        let bytes = try content.read(offset..<end)
        unsafe bytes.withUnsafeReadableBytes { unsafe hash.update(bufferPointer: $0) }
        offset = end
        if offset == content.length { try content.check(hash.finalize().bytes) }
        return bytes
    }

    /// Begins again at the start.
    package mutating func rewind() { (hash, offset) = (SHA256(), 0) }
}

/// Thrown for a stored body that is not what was accepted.
package struct DamagedBody: Error, Hashable, CustomStringConvertible {
    package enum What: String, Sendable { case missing, changed }

    /// The name of its file in `blobs/`.
    package let name: String
    package let what: What

    package var description: String {
        switch what {
        case .missing: "its body is missing: blobs/\(name)"
        case .changed: "its body has changed on the disk: blobs/\(name)"
        }
    }
}
