// A decoded head, checked by the request gate, in the form the engine reads (RFC 9112 §3, security.md §2).
import HTTPTypes
import NIOHTTP1
import RockpoolCore

/// A request head that has passed the gate.
struct IncomingHead {
    let method: HTTPRequest.Method
    let target: RequestTarget
    let fields: HTTPFields
    let framing: Framing
    let isOldClient: Bool
    let keepsAlive: Bool
    /// Of the message as it came, for Via.
    private let version: String
    /// The connection options, lower case.
    private let options: [String]

    /// Throws `Refusal` for a head that RFC 9110 or 9112 forbids to pass on.
    ///
    /// - Parameter isStream: it came on an HTTP/2 stream, and stands for a request of HTTP/1.1.
    init(_ head: HTTPRequestHead, limits: ClientLimits, isStream: Bool = false) throws(Refusal) {
        let fields = try HTTPFields(head.headers, isEncoded: !isStream)
        let version = isStream ? (major: 1, minor: 1) : (major: Int(head.version.major), minor: Int(head.version.minor))
        let admission = try RequestGate.admit(
            method: head.method.name, target: head.uri, version: version, fields: fields, limits: limits, hasRawValues: !isStream)
        target = admission.target
        // An empty body is none: nothing to wait for, nothing to send on.
        framing = admission.framing == .length(0) ? .none : admission.framing
        guard let method = HTTPRequest.Method(head.method.name) else {
            throw Refusal(status: 400, problem: "bad-request", detail: "the method is not a token")
        }
        self.method = method
        self.fields = fields
        isOldClient = version.minor == 0
        self.version = isStream ? "2.0" : isOldClient ? "1.0" : "1.1"
        options = fields.listedTokens(.connection)
        // The decoder stops at an upgrade request: without a tunnel the connection cannot go on (security.md §1.2).
        keepsAlive = !options.contains("close") && !options.contains("upgrade") && (!isOldClient || options.contains("keep-alive"))
    }

    var expectsContinue: Bool { !isOldClient && fields[.expect]?.lowercased() == "100-continue" }

    var wantsWebSocket: Bool {
        !isOldClient && method == .get && framing == .none && options.contains("upgrade")
            && fields.listedTokens(.upgrade) == ["websocket"]
    }

    /// The head as it goes on: end-to-end fields, our `Via`.
    func request(origin: OriginAddress, target: String, viaName: String) -> RequestHead {
        var fields = HopByHop.stripped(fields)
        fields[.hostField] = nil
        Via.appended(to: &fields, version: version, name: viaName)
        Via.appendedLoopMark(to: &fields, name: viaName)
        return RequestHead(method: method, origin: origin, target: target, fields: fields)
    }
}

extension HTTPMethod {
    /// As it stood on the wire: NIO spells this one as an identifier.
    fileprivate var name: String { self == .MSEARCH ? "M-SEARCH" : rawValue }
}

extension HTTPFields {
    /// Throws `Refusal` when a name is not a token.
    ///
    /// - Parameter isEncoded: whether values hold bytes beyond ASCII as `ObsText` has them.
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

    /// The lower-cased members of a comma-separated field.
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

    /// What the decoder's error means to the client.
    init(parserError: HTTPParserError) {
        switch parserError {
        case .headerOverflow:
            self.init(status: 431, problem: "head-too-large", detail: "the request head is larger than the limits allow")
        case .invalidVersion:
            self.init(status: 505, problem: "bad-request", detail: "only HTTP/1.0 and HTTP/1.1 are spoken here")
        default:
            self.init(status: 400, problem: "bad-request", detail: "the request is malformed (\(parserError))")
        }
    }
}

extension TransferFailure {
    /// The client closed before its request was complete.
    static let clientLeft = TransferFailure(kind: .cancelled, sent: .no, detail: "the client left")

    /// The client's body broke the rules; whatever has gone upstream must not look complete (security.md §1.7).
    static func malformed(_ detail: String) -> TransferFailure { TransferFailure(kind: .protocolError, sent: .no, detail: detail) }
}
