// A stored file read piece by piece, for connections where the kernel cannot send the file.
import Glibc
import NIOCore
import NIOPosix
import RockpoolCore
import RockpoolEngine
import Synchronization

/// A range of a file, read on threads that may block. Readers of the same file share its descriptor.
final class FileBody: BodySource {
    /// The default size of a piece in bytes.
    private static let chunk = Int.kib(64)

    private struct State {
        /// The start of the next piece.
        var offset: Int64
        /// The end of the last piece.
        let end: Int64
        /// Opened with the first piece.
        var file: OpenBody?
    }

    private let path: String
    private let lease: any Sendable
    private let state: Mutex<State>

    /// - Parameter lease: keeps the file from being unlinked.
    init(path: String, offset: Int64, length: Int64, lease: any Sendable) {
        self.path = path
        self.lease = lease
        state = Mutex(State(offset: offset, end: offset + length))
    }

    func next() async throws(TransferFailure) -> ByteBuffer? { try await next(upTo: Self.chunk) }

    /// Returns the next piece, of `most` bytes at most; nil at the end.
    func next(upTo most: Int) async throws(TransferFailure) -> ByteBuffer? {
        let (offset, end) = state.withLock { ($0.offset, $0.end) }
        guard offset < end else { return nil }
        let count = Int(min(end - offset, Int64(most)))
        let piece = try? await NIOThreadPool.singleton.runIfActive { [self] in try read(count, at: offset) }
        guard let piece, piece.readableBytes > 0 else {
            throw TransferFailure(kind: .reset, sent: .yes, detail: "the stored body is shorter than it was")
        }
        state.withLock { $0.offset = offset + Int64(piece.readableBytes) }
        return piece
    }

    func abandon() { state.withLock { $0.offset = $0.end } }

    private func read(_ count: Int, at offset: Int64) throws -> ByteBuffer {
        let file = try opened()
        var buffer = ByteBuffer()
        unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { target in
            unsafe max(0, pread(file.descriptor, target.baseAddress, count, off_t(offset)))
        }
        return buffer
    }

    private func opened() throws -> OpenBody {
        if let file = state.withLock(\.file) { return file }
        let file = try OpenBody(path)
        state.withLock { $0.file = file }
        return file
    }
}

/// A reader's reference to an open file (pread(2)). The last reader closes it.
final class OpenBody: Sendable {
    /// Identifies the file itself, because the path may later lead to another one.
    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
    }

    private struct Place {
        let descriptor: CInt
        var readers = 0
    }

    private static let places = Mutex<[Identity: Place]>([:])

    /// For `pread` only: the file position is shared and unused.
    let descriptor: CInt
    private let identity: Identity

    /// Opens the file at `path`, or shares the descriptor of its other readers. May block.
    /// - Throws: `IOError`.
    init(_ path: String) throws {
        let own = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard own >= 0 else { throw IOError(errnoCode: errno, reason: "open") }
        var status = stat()
        guard unsafe fstat(own, &status) == 0 else {
            let code = errno
            close(own)
            throw IOError(errnoCode: code, reason: "fstat")
        }
        let file = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        let shared = OpenBody.places.withLock { places in
            var place = places[file] ?? Place(descriptor: own)
            place.readers += 1
            places[file] = place
            return place.descriptor
        }
        if shared != own { close(own) }
        descriptor = shared
        identity = file
    }

    deinit {
        let isLast = OpenBody.places.withLock { places in
            guard var place = places[identity], place.readers > 1 else {
                places[identity] = nil
                return true
            }
            place.readers -= 1
            places[identity] = place
            return false
        }
        if isLast { close(descriptor) }
    }
}
