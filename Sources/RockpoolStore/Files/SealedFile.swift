// A sealed file of a body (`storage.encrypt`).
import Crypto
import FoundationEssentials
import Glibc
package import NIOCore
import RockpoolCore

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
