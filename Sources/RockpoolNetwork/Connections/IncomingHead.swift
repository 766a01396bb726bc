// A decoded request head, validated by the request gate, in the engine's form (RFC 9112 §3, docs/security-model.md#request-gate).
import DequeModule
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine

/// A request head that has passed the gate.
struct IncomingHead: Sendable {
    let method: HTTPRequest.Method
    let target: RequestTarget
    let fields: HTTPFields
    /// The value of `Host`; nil only in HTTP/1.0.
    let host: Authority?
    let framing: Framing
    let isOldClient: Bool
    let keepsAlive: Bool
    /// The version of the received message, for Via.
    private let version: String
    /// The connection options, lower case.
    private let options: [String]

    /// Throws `Refusal` for a head that RFC 9110 or 9112 forbids to forward.
    ///
    /// - Parameter isStream: true for a head of an HTTP/2 stream, which is treated as a request of HTTP/1.1.
    init(_ head: HTTPRequestHead, limits: ClientLimits, isStream: Bool = false) throws(Refusal) {
        let fields = try HTTPFields(head.headers, isEncoded: !isStream)
        let version = isStream ? (major: 1, minor: 1) : (major: Int(head.version.major), minor: Int(head.version.minor))
        let admission = try RequestGate.admit(
            method: head.method.name, target: head.uri, version: version, fields: fields, limits: limits, hasRawValues: !isStream)
        (target, host) = (admission.target, admission.host)
        // An empty body is treated as no body.
        framing = admission.framing == .length(0) ? .none : admission.framing
        guard let method = HTTPRequest.Method(head.method.name) else {
            throw Refusal(status: 400, problem: "bad-request", detail: "the method is not a token")
        }
        self.method = method
        self.fields = fields
        isOldClient = version.minor == 0
        self.version = isStream ? "2.0" : isOldClient ? "1.0" : "1.1"
        options = fields.listedTokens(.connection)
        // The decoder stops at an upgrade request: without a tunnel the connection cannot continue (docs/security-model.md#upgrades).
        keepsAlive = !options.contains("close") && !options.contains("upgrade") && (!isOldClient || options.contains("keep-alive"))
    }

    var expectsContinue: Bool { !isOldClient && fields[.expect]?.lowercased() == "100-continue" }

    var acceptsTrailers: Bool { Trailers.areAccepted(by: fields) }

    var wantsWebSocket: Bool {
        !isOldClient && method == .get && framing == .none && options.contains("upgrade")
            && fields.listedTokens(.upgrade) == ["websocket"]
    }

    /// Returns the head for forwarding: end-to-end fields and the proxy's `Via`.
    func request(origin: OriginAddress, target: String, viaName: String) -> RequestHead {
        let trailers = Trailers.accepted(fields)
        var fields = HopByHop.stripped(fields)
        fields[.te] = trailers
        fields[.hostField] = nil
        Via.appended(to: &fields, version: version, name: viaName)
        Via.appendedLoopMark(to: &fields, name: viaName)
        return RequestHead(method: method, origin: origin, target: target, fields: fields)
    }
}

extension HTTPMethod {
    /// The method as received: NIO's raw value of this one is an identifier.
    fileprivate var name: String { self == .MSEARCH ? "M-SEARCH" : rawValue }
}

extension HTTPFields {
    /// Throws `Refusal` when a name is not a token.
    ///
    /// - Parameter isEncoded: true if values have bytes beyond ASCII in the encoding of `ObsText`.
    init(_ headers: HTTPHeaders, isEncoded: Bool = false) throws(Refusal) {
        self.init()
        reserveCapacity(headers.count)
        for (name, value) in headers {
            guard let name = HTTPField.Name(name) else {
                throw Refusal(status: 400, problem: "bad-request", detail: "a field name is not a token")
            }
            if isEncoded, let bytes = ObsText.decoded(value) {
                append(HTTPField(name: name, value: bytes))
            } else {
                append(HTTPField(name: name, value: value))
            }
        }
    }

    /// Returns the lower-cased members of a comma-separated field.
    func listedTokens(_ name: HTTPField.Name) -> [String] {
        guard contains(name) else { return [] }
        return self[values: name].flatMap { value in
            value.utf8.split(separator: UInt8(ascii: ",")).map { member in
                var token = member
                while let first = token.first, first == 0x20 || first == 0x09 { token.removeFirst() }
                while let last = token.last, last == 0x20 || last == 0x09 { token.removeLast() }
                return String(Substring(token)).lowercased()
            }
        }
    }
}

extension Framing {
    /// The declared length; nil when chunked or absent.
    var length: Int64? {
        if case .length(let length) = self { length } else { nil }
    }
}

extension Refusal {
    static let loop = Refusal(status: 508, problem: "loop", detail: "this request has been here before (Via or CDN-Loop names us)")

    /// Maps the decoder's error to a response.
    init(parserError: HTTPParserError) {
        switch parserError {
        case .headerOverflow:
            self.init(status: 431, problem: "head-too-large", detail: "the request head is larger than the limits allow")
        case .invalidVersion:
            self = .versionNotSupported
        default:
            self.init(status: 400, problem: "bad-request", detail: "the request is malformed (\(parserError))")
        }
    }
}

extension TransferFailure {
    /// The client closed before its request was complete.
    static let clientLeft = TransferFailure(kind: .cancelled, sent: .no, detail: "the client left")

    /// The client's body is malformed; the part sent upstream must not look complete (docs/security-model.md#broken-bodies).
    static func malformed(_ detail: String) -> TransferFailure { TransferFailure(kind: .protocolError, sent: .no, detail: detail) }
}

/// Encodes such bytes for the decoder (RFC 9110 §5.5): each becomes the character of its number (ISO 8859-1), and is converted back after
/// decoding.
enum ObsText {
    /// Returns the head's bytes for the decoder.
    static func encoded(_ head: ByteBuffer) -> ByteBuffer {
        guard head.readableBytesView.contains(where: { $0 >= 0x80 }) else { return head }
        var encoded = ByteBuffer()
        encoded.reserveCapacity(head.readableBytes + 64)
        for byte in head.readableBytesView {
            if byte < 0x80 {
                encoded.writeInteger(byte)
            } else {
                encoded.writeInteger(0xC0 | byte >> 6)
                encoded.writeInteger(0x80 | byte & 0x3F)
            }
        }
        return encoded
    }

    /// Returns the received bytes; nil where they equal the text's.
    static func decoded(_ value: String) -> [UInt8]? {
        guard value.utf8.contains(where: { $0 >= 0x80 }) else { return nil }
        return value.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}

/// Holds the parts of pipelined requests in order (RFC 9112 §9.3.2).
struct RequestQueue {
    private var parts = Deque<HTTPServerRequestPart>()
    /// True if the last decoded part was the end of a request.
    private(set) var endsWithRequest = false
    /// The framing of the body that the next bytes belong to, by the last decoded head; `.none` after its end.
    private var last = Framing.none

    var isEmpty: Bool { parts.isEmpty }

    /// The framing of the body that the next bytes belong to; nil if that request does not wait.
    var framing: Framing? { parts.isEmpty ? nil : last }

    mutating func append(_ part: HTTPServerRequestPart) {
        endsWithRequest = false
        switch part {
        case .head(let head): last = Framing(of: head)
        case .body: break
        case .end: (endsWithRequest, last) = (true, .none)
        }
        parts.append(part)
    }

    mutating func removeFirst() -> HTTPServerRequestPart? { parts.popFirst() }

    mutating func removeAll() { parts.removeAll() }

    /// Resets `endsWithRequest` before the next bytes are decoded.
    mutating func beginDecoding() { endsWithRequest = false }
}

extension Framing {
    /// The framing that the decoder applies to the body after a head; the gate judges the head when its turn has come.
    fileprivate init(of head: HTTPRequestHead) {
        if head.headers.contains(name: "transfer-encoding") {
            self = .chunked
        } else {
            let length = head.headers.first(name: "content-length").flatMap { Int64($0) } ?? 0
            self = length > 0 ? .length(length) : .none
        }
    }
}

/// The state of a connection's running exchange.
struct CurrentExchange {
    /// The number of the request on its connection; identifies late events of an earlier exchange.
    let number: Int
    let body: BodyPipe?
    /// True while the client waits for `100 Continue`.
    var expectsContinue: Bool
    let isOldClient: Bool
    /// The framing of the request's body.
    let framing: Framing
    /// True if a relay answers: it keeps a little of what the client sends meanwhile.
    private(set) var isRelayed = false
    var isRequestEnded = false
    var isBodyPaused = false
    /// True after the final reply has begun: no interim response may follow.
    var hasReplied = false
    var task: Task<Void, Never>?
    /// Its place among the exchanges under way; nil for a stream, whose connection keeps it.
    var place: ExchangePlace?

    init(number: Int, body: BodyPipe?, expectsContinue: Bool, isOldClient: Bool, framing: Framing = .none) {
        self.number = number
        self.body = body
        self.expectsContinue = expectsContinue
        self.isOldClient = isOldClient
        self.framing = framing
    }

    /// The exchange of a request without a body that a relay answers.
    init(relayed number: Int, place: ExchangePlace?) {
        self.init(number: number, body: nil, expectsContinue: false, isOldClient: false)
        self.place = place
        (isRequestEnded, hasReplied, isRelayed) = (true, true, true)
    }

    /// Passes bytes of the body on. `isBodyPaused` is set while the pipe is full.
    mutating func receive(_ bytes: ByteBuffer, timer: inout DeadlineTimer) {
        guard let body, bytes.readableBytes > 0 else { return }
        timer.receive(byteCount: bytes.readableBytes)
        // Its reader may have made room since an earlier chunk of the same turn: then no signal says so.
        isBodyPaused = !body.offer(bytes)
    }

    /// Notes the end of the request: from now on the client waits for the proxy.
    mutating func endRequest(timer: inout DeadlineTimer) {
        isRequestEnded = true
        body?.finish()
        timer.enter(.answering)
    }

    /// Ends the exchange without a reply; `failure` is the reason that the body's reader gets.
    func cancel(failure: TransferFailure) {
        body?.fail(failure)
        task?.cancel()
    }
}
