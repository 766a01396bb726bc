// A decoded request head, validated by the request gate, in the engine's form (RFC 9112 §3, docs/security-model.md#request-gate).
import HTTPTypes
import NIOHTTP1
import RockpoolCore

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
