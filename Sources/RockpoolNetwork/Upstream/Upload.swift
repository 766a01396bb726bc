// A request body for libcurl's read callback: bytes now, "not yet", or the end.
import CCurl
import Glibc
import NIOCore
import RockpoolEngine

/// The request body of one transfer, read on the curl thread.
struct Upload {
    private enum Source {
        case none
        case bytes(ByteBuffer)
        case file(descriptor: Int32)
        case sealed(length: Int64, read: @Sendable (Range<Int64>) throws -> ByteBuffer)
        case stream(BodyPipe)
    }

    private let source: Source
    /// The total length in bytes; nil sends chunked.
    let length: Int64?
    private var offset: Int64 = 0
    /// True after the last byte was passed to libcurl.
    private(set) var isExhausted: Bool
    /// True while waiting for the client, so that the upstream is not blamed for the silence.
    private(set) var isStarved = false

    init(_ body: OutboundRequest.Body) {
        switch body {
        case .none:
            (source, length, isExhausted) = (.none, 0, true)
        case .bytes(let bytes):
            (source, length, isExhausted) = (.bytes(bytes), Int64(bytes.readableBytes), bytes.readableBytes == 0)
        case .file(let path, let size):
            (source, length, isExhausted) = unsafe (.file(descriptor: open(path, O_RDONLY | O_CLOEXEC)), size, size == 0)
        case .sealed(let size, let read):
            (source, length, isExhausted) = (.sealed(length: size, read: read), size, size == 0)
        case .stream(let pipe, let size):
            (source, length, isExhausted) = (.stream(pipe), size, false)
        }
    }

    var hasBody: Bool {
        if case .none = source { false } else { true }
    }

    /// True if the bytes are available only once.
    var isStream: Bool {
        if case .stream = source { true } else { false }
    }

    func onReadable(_ listener: @escaping @Sendable () -> Void) {
        if case .stream(let pipe) = source { pipe.onReadable(listener) }
    }

    mutating func read(into target: UnsafeMutableRawBufferPointer) -> BodyPipe.Taken {
        let taken = unsafe take(into: target)
        isStarved = taken == .empty
        if case .bytes(let count) = taken { offset += Int64(count) }
        if taken == .end || offset == length { isExhausted = true }
        return taken
    }

    private func take(into target: UnsafeMutableRawBufferPointer) -> BodyPipe.Taken {
        switch source {
        case .none: return .end
        case .bytes(let bytes):
            let left = bytes.readableBytesView.dropFirst(Int(offset))
            let count = min(left.count, target.count)
            unsafe target.copyBytes(from: left.prefix(count))
            return count == 0 ? .end : .bytes(count)
        case .file(let descriptor):
            let count = unsafe pread(descriptor, target.baseAddress, target.count, off_t(offset))
            return count < 0 ? .failed : count == 0 ? (offset == length ? .end : .failed) : .bytes(count)
        case .sealed(let size, let read):
            let end = min(offset + Int64(target.count), size)
            guard let bytes = try? read(min(offset, end)..<end) else { return .failed }
            unsafe target.copyBytes(from: bytes.readableBytesView)
            return bytes.readableBytes == 0 ? .end : .bytes(bytes.readableBytes)
        case .stream(let pipe): return unsafe pipe.take(into: target)
        }
    }

    /// Rewinds for a resend by libcurl on another connection: only possible when the bytes are still available.
    mutating func rewind(to offset: Int64, whence: Int32) -> Bool {
        if case .stream = source { return false }
        guard whence == SEEK_SET else { return false }
        self.offset = offset
        isExhausted = offset == length
        return true
    }

    /// Ends the upload: closes the file, and notifies the client's side that no more data is needed.
    func abandon() {
        switch source {
        case .file(let descriptor): close(descriptor)
        case .stream(let pipe): pipe.abandon()
        case .none, .bytes, .sealed: break
        }
    }
}
