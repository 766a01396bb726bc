// Rockpool's own errors as problem documents, with cause and remedy (RFC 9457, docs/reference/admin-api.md#problems).
import HTTPTypes
package import NIOCore
package import RockpoolCore

/// A problem document for a client; an error where a command cannot be carried out.
package struct Problem: Error, Sendable {
    package var type: String
    package var status: Int
    package var title: String
    package var detail: String
    package var upstream: String?
    /// The RFC 9209 name of the upstream failure.
    package var error: String?
    /// Seconds after which a retry is reasonable.
    package var retryAfter: Int?
    /// The methods allowed instead, for 405 (RFC 9110 §15.5.6).
    package var allow = "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"
    /// Members beyond the standard ones (RFC 9457 §3.2).
    package var extensions = JSONObject()

    /// What to do where the outbox has no room, the end of a `detail`.
    static let roomAdvice = "rockpool outbox summary shows what fills the outbox: deliver or discard that, or raise the limit"

    package init(_ type: ProblemType, detail: String, upstream: String? = nil, error: String? = nil, retryAfter: Int? = nil) {
        self.type = type.rawValue
        self.status = type.status
        self.title = type.title
        self.detail = detail
        self.upstream = upstream
        self.error = error
        self.retryAfter = retryAfter
    }

    package init(_ refusal: Refusal) {
        let known = ProblemType(rawValue: refusal.problem)
        self.type = refusal.problem
        self.status = refusal.status
        self.title = known?.title ?? "Refused"
        self.detail = refusal.detail
        if known == .busy { retryAfter = 1 }
    }

    /// The `Proxy-Status` error of a reply for which no request was sent upstream (RFC 9209 §2.3).
    var proxyError: ProxyError {
        switch status {
        case 508: .proxyLoopDetected
        case 401, 403, 405, 407, 421, 429: .httpRequestDenied
        case 400, 408, 411, 413...417, 431, 501, 505: .httpRequestError
        default: .proxyInternalResponse
        }
    }

    /// The document and its head.
    package var response: (head: ResponseHead, body: ByteBuffer) {
        var members: [(String, JSONValue)] = [
            ("type", .string("urn:rockpool:problem:\(type)")), ("title", .string(title)), ("status", .number(JSONNumber(Int64(status)))),
            ("detail", .string(detail)),
        ]
        if let upstream { members.append(("upstream", .string(upstream))) }
        if let error { members.append(("error", .string(error))) }
        members += extensions.map { ($0.name, $0.value) }
        var head = ResponseHead(status: status, fields: [.contentType: "application/problem+json", .cacheControl: "no-store"])
        if let retryAfter { head.fields[.retryAfter] = String(retryAfter) }
        if status == 405 { head.fields[.allow] = allow }
        return (head, ByteBuffer(bytes: JSONValue.object(.init(members)).serialized()))
    }
}

extension Reply {
    /// A reply with a problem document.
    init(_ problem: Problem, _ trace: Trace) {
        var (head, body) = problem.response
        if trace.proxyStatus == nil { head.fields[.proxyStatus] = ProxyStatus(error: problem.proxyError).fieldValue }
        self.init(head: head, body: .bytes(body), trace: trace)
    }
}

// MARK: - Failed requests

/// Replies after a failed request to an upstream: the problem document, and the member of `Proxy-Status` (RFC 9209).
extension RequestContext {
    /// Returns the error reply for a failed request for which no stored response may be served.
    /// - Parameter isValidation: True if an entry is stored that must not be served without validation. Then the status is 504
    ///   (RFC 9111 §5.2.2.2).
    mutating func unanswered(_ failure: TransferFailure, offlineMiss: Bool, isValidation: Bool = false) -> Reply {
        let isUnreachable =
            (failure.sent == .no || isValidation) && failure.kind != .tls && failure.kind != .denied && failure.kind != .protocolError
        let type: ProblemType =
            if failure.kind == .denied {
                .forbiddenTarget
            } else if isUnreachable && offlineMiss {
                .offlineMiss
            } else {
                failure.kind.isTimeout ? .upstreamTimeout : .upstreamError
            }
        trace.verdict = .failed
        trace.record(.refused(problem: type.rawValue))
        var reply = Reply(failed: failure, as: type, origin: request.origin, upstream: plan.upstream, trace: &trace)
        if request.isOfEventSource, type != .forbiddenTarget { reply.isWithheld = true }
        return reply
    }

    /// Records the failure for `Proxy-Status`.
    mutating func noteFailure(_ failure: TransferFailure) { trace.note(failure: failure, origin: request.origin) }
}

extension Reply {
    /// A problem document for a failure, which is also recorded for `Proxy-Status`.
    init(failed failure: TransferFailure, as type: ProblemType, origin: OriginAddress, upstream: Upstream?, trace: inout Trace) {
        trace.note(failure: failure, origin: origin)
        let detail = failure.detail.isEmpty ? failure.kind.rawValue : failure.detail
        self.init(
            Problem(type, detail: "\(origin.hostAndPort): \(detail)", upstream: upstream?.name, error: failure.proxyErrorName), trace)
        isWithheld = upstream?.onMiss == .close && type != .forbiddenTarget
    }
}

extension Trace {
    mutating func note(failure: TransferFailure, origin: OriginAddress) {
        proxyStatus = ProxyStatus(
            error: ProxyError(rawValue: failure.proxyErrorName) ?? .proxyInternalError, nextHop: origin.hostAndPort)
    }
}
