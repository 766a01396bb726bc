// The detection of an upstream's final head among interim ones, and the framing of its body (RFC 9110 §15.2, RFC 9112 §6.3).
import HTTPTypes
import RockpoolCore

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
    private(set) var trailers = HTTPFields()
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

    /// Keeps one line after the body if it is a field; anything else is ignored.
    mutating func takeTrailer(_ line: [UInt8]) {
        guard line.suffix(2) == [0x0D, 0x0A], line.count > 2, let field = try? ResponseGate.field(ofLine: line.dropLast(2)) else { return }
        trailers.append(field)
    }
}
