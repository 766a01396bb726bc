// What one transfer receives and sends: the detection of the final head among interim ones, and the body of a request (RFC 9110 §15.2, RFC
// 9112 §6.3).
import CCurl
import Glibc
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolEngine

/// Parses the heads of one answer, line by line as libcurl passes them.
struct ResponseHeads {
    enum Step {
        case more
        case interim(ResponseHead)
        case final(ResponseHead, length: Int64?, isChunked: Bool)
    }

    /// The maximum size of one head in bytes.
    static let headLimit = ResponseHeadLines.Limits().headBytes

    private let method: String
    private let allowsUpgrade: Bool
    private var lines: ResponseHeadLines
    private var isDone = false
    /// True once a line of the final head was received, or of an interim one.
    private var hasBegun = false
    /// True if the request accepts trailers.
    private let acceptsTrailers: Bool
    /// The number of steps that the handshake with a parent proxy may still take.
    private var handshakeSteps: Int
    /// Fields after the body, if the request accepts them.
    private var trailers = HTTPFields()
    /// Bytes of the lines after the final head.
    private var trailerBytes: Int64 = 0

    /// - Parameter allowsUpgrade: true if the request offered another protocol, so that 101 may answer it.
    /// - Parameter allowsBareLF: true if lines of the head may end in LF alone.
    /// - Parameter acceptsTrailers: true if the request accepts trailers.
    /// - Parameter negotiates: true if libcurl proves its identity to a parent proxy in several steps.
    init(
        method: String, allowsUpgrade: Bool = false, allowsBareLF: Bool = false, acceptsTrailers: Bool = false, negotiates: Bool = false
    ) {
        self.acceptsTrailers = acceptsTrailers
        handshakeSteps = negotiates ? 3 : 0
        lines = ResponseHeadLines(allowsBareLF: allowsBareLF)
        self.method = method
        self.allowsUpgrade = allowsUpgrade
    }

    /// Processes one line with its line end. Lines after the final head are trailers, which are never stored.
    ///
    /// Throws `Refusal` (502) for a head that an upstream may not send.
    mutating func receive(_ line: [UInt8]) throws(Refusal) -> Step {
        guard !isDone else {
            // libcurl keeps every line in memory until the answer ends.
            trailerBytes += Int64(line.count)
            guard trailerBytes <= Self.headLimit.bytes else { throw .badGateway("the trailers are longer than \(Self.headLimit)") }
            takeTrailer(line)
            return .more
        }
        // Of a stream that ends during its upload, libcurl 7.88 passes the trailers before the head.
        if acceptsTrailers, !hasBegun, !line.starts(with: Array("HTTP/".utf8)) {
            takeTrailer(line)
            return .more
        }
        hasBegun = true
        guard let head = try lines.take(line) else { return .more }
        if head.status == 101, allowsUpgrade {
            isDone = true
            return .final(head, length: 0, isChunked: false)
        }
        if head.status == 407, handshakeSteps > 0, ProxyChallenge.continues(head.fields) {
            // libcurl drops the body, and repeats the request with the next message.
            handshakeSteps -= 1
            return .more
        }
        let framing = try ResponseGate.check(status: head.status, fields: head.fields, requestMethod: method)
        if head.status < 200 { return .interim(head) }
        isDone = true
        // An answer to HEAD has no body, but its Content-Length is the length that a GET's would have.
        let declared = head.fields[.contentLength].flatMap { Int64($0) }
        let length = framing == .chunked ? nil : framing?.length ?? (method == "HEAD" ? declared : framing == nil ? nil : 0)
        return .final(head, length: length, isChunked: framing == .chunked)
    }

    /// Returns the fields after the body that a client may get.
    /// - Parameter lines: Those of a chunked body, which are not passed to `receive`.
    mutating func trailers(after lines: [[UInt8]]) -> HTTPFields {
        for line in lines { takeTrailer(line) }
        return trailers.isEmpty ? trailers : Trailers.forwardable(trailers)
    }

    /// Keeps one line after the body if it is a field; anything else is ignored.
    private mutating func takeTrailer(_ line: [UInt8]) {
        guard line.suffix(2) == [0x0D, 0x0A], line.count > 2, let field = try? ResponseGate.field(ofLine: line.dropLast(2)) else { return }
        trailers.append(field)
    }
}

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
