// A request body for libcurl's read callback: bytes now, "not yet", or the end.
import CCurl
import Glibc
import NIOCore
import RockpoolCore
import RockpoolEngine

/// The request body of one transfer, read on the curl thread.
struct Upload {
    private enum Source {
        case none
        case bytes(ByteBuffer)
        case stored(any BodyReader)
        case stream(BodyPipe)
    }

    private var source: Source
    /// The total length in bytes; nil sends chunked.
    let length: Int64?
    private var offset: Int64 = 0
    /// True after the last byte was passed to libcurl.
    private(set) var isExhausted: Bool
    /// True while waiting for the client, so that the upstream is not blamed for the silence.
    private(set) var isStarved = false
    /// Why a read has failed; nil if it has not, and where the client's side knows.
    private(set) var failure: TransferFailure?

    init(_ body: OutboundRequest.Body) {
        switch body {
        case .none:
            (source, length, isExhausted) = (.none, 0, true)
        case .bytes(let bytes):
            (source, length, isExhausted) = (.bytes(bytes), Int64(bytes.readableBytes), bytes.readableBytes == 0)
        case .stored(let reader, let size):
            (source, length, isExhausted) = (.stored(reader), size, size == 0)
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

    private mutating func take(into target: UnsafeMutableRawBufferPointer) -> BodyPipe.Taken {
        switch source {
        case .none: return .end
        case .bytes(let bytes):
            let left = bytes.readableBytesView.dropFirst(Int(offset))
            let count = min(left.count, target.count)
            unsafe target.copyBytes(from: left.prefix(count))
            return count == 0 ? .end : .bytes(count)
        case .stored(var reader):
            source = .none
            defer { source = .stored(reader) }
            do throws(TransferFailure) {
                let bytes = try reader.next(target.count)
                unsafe target.copyBytes(from: bytes.readableBytesView)
                return bytes.readableBytes == 0 ? .end : .bytes(bytes.readableBytes)
            } catch {
                failure = error
                return .failed
            }
        case .stream(let pipe): return unsafe pipe.take(into: target)
        }
    }

    /// Rewinds for a resend by libcurl on another connection: only possible when the bytes are still available.
    mutating func rewind(to offset: Int64, whence: Int32) -> Bool {
        guard whence == SEEK_SET else { return false }
        switch source {
        case .stream: return false
        case .stored(var reader):
            // The content is hashed from its start.
            guard offset == 0 else { return false }
            reader.rewind()
            source = .stored(reader)
        case .none, .bytes: break
        }
        self.offset = offset
        isExhausted = offset == length
        return true
    }

    /// Ends the upload: notifies the client's side that no more data is needed.
    func abandon() {
        if case .stream(let pipe) = source { pipe.abandon() }
    }
}
