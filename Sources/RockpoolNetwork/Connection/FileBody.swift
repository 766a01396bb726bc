// A stored file read piece by piece, for connections where the kernel cannot send it by itself.
import Glibc
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolEngine
import Synchronization

/// A part of a file, read on threads that may block.
final class FileBody: BodySource {
    private static let chunk = 64 * 1024

    private let descriptor: CInt
    /// Where the next piece starts, and where the last one ends.
    private let place: Mutex<(offset: Int64, end: Int64)>
    private let lease: any Sendable

    /// Opens the file; it is closed when this goes. Throws `IOError`.
    init(path: String, offset: Int64, length: Int64, lease: any Sendable) throws {
        descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        place = Mutex((offset, offset + length))
        self.lease = lease
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "open") }
    }

    deinit { close(descriptor) }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        let (offset, end) = place.withLock { $0 }
        guard offset < end else { return nil }
        let count = Int(min(end - offset, Int64(Self.chunk)))
        let piece = try? await NIOThreadPool.singleton.runIfActive { [self] in read(count, at: offset) }
        guard let piece, piece.readableBytes > 0 else {
            throw TransferFailure(kind: .reset, sent: .yes, detail: "the stored body is shorter than it was")
        }
        place.withLock { $0.offset = offset + Int64(piece.readableBytes) }
        return piece
    }

    func abandon() { place.withLock { $0.offset = $0.end } }

    private func read(_ count: Int, at offset: Int64) -> ByteBuffer {
        var buffer = ByteBuffer()
        unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { target in
            unsafe max(0, pread(descriptor, target.baseAddress, count, off_t(offset)))
        }
        return buffer
    }
}
