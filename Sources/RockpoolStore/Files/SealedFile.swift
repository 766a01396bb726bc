// The form of a sealed file: a header, then chunks that are sealed one by one, so that any range can be read alone.
import Crypto
import FoundationEssentials
import Glibc
package import NIOCore
import RockpoolCore

/// `magic | key id | salt`, then chunks of 64 KiB, each `ciphertext | tag`. The salt gives each file a key of its own; a chunk's nonce
/// is its number.
struct SealedChunks: Sendable {
    /// Plain bytes of a chunk; the last may be shorter.
    static let chunk = Int.kib(64)
    private static let saltLength = 20
    private static let tagLength = 16
    /// Bytes before the first chunk.
    static let headerLength = BodySeal.magic.count + BodySeal.idLength + saltLength

    /// The first bytes of the file.
    let header: [UInt8]
    private let key: SymmetricKey

    /// For a new file.
    init(_ seal: BodySeal) {
        var random = SystemRandomNumberGenerator()
        let salt = (0..<Self.saltLength).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let (id, key) = seal.fileKey(salt: salt)
        self.key = key
        header = BodySeal.magic + id + salt
    }

    /// For a file that begins with `header`.
    /// - Throws: `SealBroken` when that is no such header, or no key is known for it.
    init(header: [UInt8], _ seal: BodySeal) throws {
        guard header.count == Self.headerLength, BodySeal.isSealed(header),
            let key = seal.fileKey(id: BodySeal.keyID(of: header), salt: header.suffix(Self.saltLength))
        else { throw SealBroken() }
        self.key = key
        self.header = header
    }

    /// Bytes of the file for a body of `length` bytes: always more than the body, so that the size tells a sealed file from a plain one.
    static func size(of length: Int64) -> Int64 {
        let chunks = (length + Int64(chunk) - 1) / Int64(chunk)
        return Int64(headerLength) + length + chunks * Int64(tagLength)
    }

    /// True if a file of `size` bytes can hold a body of `length` bytes, plain or sealed.
    static func isSize(_ size: Int64, of length: Int64) -> Bool { size == length || size == self.size(of: length) }

    /// Bytes of the body in a sealed file of `size` bytes; the reverse of `size(of:)`.
    static func length(of size: Int64) -> Int64 {
        let sealed = max(0, size - Int64(headerLength))
        let chunks = (sealed + Int64(chunk + tagLength) - 1) / Int64(chunk + tagLength)
        return max(0, sealed - chunks * Int64(tagLength))
    }

    /// Where the chunk of this number begins in the file.
    static func place(of number: Int64) -> Int64 { Int64(headerLength) + number * Int64(chunk + tagLength) }

    /// Bytes that a chunk of `length` plain bytes takes in the file.
    static func sealedLength(_ length: Int) -> Int { length + tagLength }

    /// The chunk as it is written.
    func seal(_ bytes: [UInt8], number: Int64) throws -> [UInt8] {
        let box = try AES.GCM.seal(bytes, using: key, nonce: Self.nonce(number))
        return Array(box.ciphertext) + Array(box.tag)
    }

    /// The plain bytes of a chunk.
    /// - Throws: `SealBroken`.
    func open(_ bytes: ByteBuffer, number: Int64) throws -> Data {
        // One contiguous copy: a view of the buffer would be read byte by byte.
        let sealed = unsafe bytes.withUnsafeReadableBytes { unsafe Data($0) }
        guard sealed.count >= Self.tagLength,
            let box = try? AES.GCM.SealedBox(
                nonce: Self.nonce(number), ciphertext: sealed.dropLast(Self.tagLength), tag: sealed.suffix(Self.tagLength)),
            let plain = try? AES.GCM.open(box, using: key)
        else { throw SealBroken() }
        return plain
    }

    private static func nonce(_ number: Int64) throws -> AES.GCM.Nonce {
        try AES.GCM.Nonce(data: [0, 0, 0, 0] + stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> Int64($0)) })
    }
}

extension SealedChunks {
    /// Plain bytes at these positions of a body of `length` bytes.
    /// - Parameter read: gives bytes of the file.
    func read(_ range: Range<Int64>, of length: Int64, _ read: (_ offset: Int64, _ count: Int) throws -> ByteBuffer) throws -> ByteBuffer {
        var plain = ByteBuffer()
        guard !range.isEmpty else { return plain }
        plain.reserveCapacity(range.count)
        let size = Int64(Self.chunk)
        for number in range.lowerBound / size...(range.upperBound - 1) / size {
            let start = number * size
            let count = Int(min(size, length - start))
            let bytes = try open(try read(Self.place(of: number), Self.sealedLength(count)), number: number)
            let wanted = range.clamped(to: start..<start + Int64(bytes.count))
            let part = Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)
            _ = unsafe bytes.withUnsafeBytes { unsafe plain.writeBytes(UnsafeRawBufferPointer(rebasing: $0[part])) }
        }
        return plain
    }
}

/// A sealed file, opened anew for each read, so that a slow reader keeps no descriptor.
package struct SealedFile: Sendable {
    let path: String
    let seal: BodySeal
    /// Bytes of the body.
    package let length: Int64

    /// - Throws: `FileError`; ENOENT when the file is not there.
    init(_ path: String, _ seal: BodySeal) throws(FileError) {
        guard let size = FileStatus.of(path)?.size else { throw FileError(call: "lstat", path: path, code: errno) }
        self.init(path: path, seal: seal, length: SealedChunks.length(of: size))
    }

    private init(path: String, seal: BodySeal, length: Int64) {
        self.path = path
        self.seal = seal
        self.length = length
    }

    /// All of the body. - Throws: `SealBroken`, `FileError`.
    package func bytes() throws -> [UInt8] { Array(try read(0..<length).readableBytesView) }

    /// Plain bytes at these positions of the body.
    /// - Throws: `SealBroken`, `FileError`; EIO when the file ends before.
    package func read(_ range: Range<Int64>) throws -> ByteBuffer {
        let file = try Descriptor(path, O_RDONLY)
        let header = try file.read(at: 0, count: SealedChunks.headerLength)
        let chunks = try SealedChunks(header: Array(header.readableBytesView), seal)
        return try chunks.read(range, of: length) { try file.read(at: $0, count: $1) }
    }

    /// SHA-256 of the body.
    func digest() throws -> [UInt8] {
        var hash = SHA256()
        for start in stride(from: Int64(0), to: length, by: Int(Self.step)) {
            let bytes = try read(start..<min(start + Self.step, length))
            unsafe bytes.withUnsafeReadableBytes { unsafe hash.update(bufferPointer: $0) }
        }
        return hash.finalize().bytes
    }

    /// Bytes read at once where a whole file is read.
    private static let step: Int64 = .mib(1)
}
