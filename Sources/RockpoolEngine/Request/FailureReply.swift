// Replies after a failed request to an upstream: the problem document, and the member of `Proxy-Status` (RFC 9209).
import RockpoolCore

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
