// The step `fetch`: sends one request upstream if reachability permits, and records the outcome.
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Sends `head` upstream for `job`.
    ///
    /// - Parameter stored: Stored responses of the key, as examples of the upstream's own responses.
    ///
    /// Throws `TransferFailure`, with `sent: no` if the request was not attempted because the upstream is known to be unreachable.
    func fetch(
        _ head: RequestHead, _ body: OutboundRequest.Body, for context: inout RequestContext, stored: [StoredResponse] = [],
        freshConnection: Bool = false
    ) async throws(TransferFailure) -> OriginReply {
        do throws(TransferFailure) {
            if case .no(let reason) = context.permission { throw .notTried(reason, upstreams.lastFailure(context.plan.upstream)) }
            let upstream = context.plan.upstream
            let reply = try await upstreams.send(
                head, body, upstream: upstream, allowsLoopback: upstream?.allowsLoopback == true || context.exchange.isLocalClient,
                freshConnection: freshConnection, interim: context.exchange.interim,
                isOwn: { PortalSuspicion.judge($0, to: context.request, stored: stored, isDeclared: upstream != nil) == nil })
            context.trace.record(.fetched(status: reply.head.status))
            await renewal.prove(context.identity, by: reply.head, to: context.request, at: context.plan.upstream)
            return await renewal.learning(from: reply, to: context)
        } catch {
            context.trace.record(.failed(error))
            throw error
        }
    }

    /// Returns the error reply for a failed request for which no stored response may be served.
    /// - Parameter isValidation: True if an entry is stored that must not be served without validation. Then the status is 504
    ///   (RFC 9111 §5.2.2.2).
    func unanswered(
        _ failure: TransferFailure, _ context: inout RequestContext, offlineMiss: Bool, isValidation: Bool = false
    ) -> Reply {
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
        context.trace.verdict = .failed
        context.trace.record(.refused(problem: type.rawValue))
        return reply(type, failure, from: context.request.origin, context.plan.upstream, &context.trace)
    }

    /// Returns a problem document for a failure, and records the failure for `Proxy-Status`.
    func reply(
        _ type: ProblemType, _ failure: TransferFailure, from origin: OriginAddress, _ upstream: Upstream?, _ trace: inout Trace
    ) -> Reply {
        noteFailure(failure, to: origin, &trace)
        let detail = failure.detail.isEmpty ? failure.kind.rawValue : failure.detail
        return Reply(
            Problem(type, detail: "\(origin.hostAndPort): \(detail)", upstream: upstream?.name, error: failure.proxyErrorName), trace)
    }

    func noteFailure(_ failure: TransferFailure, _ context: inout RequestContext) {
        noteFailure(failure, to: context.request.origin, &context.trace)
    }

    private func noteFailure(_ failure: TransferFailure, to origin: OriginAddress, _ trace: inout Trace) {
        trace.proxyStatus = ProxyStatus(
            error: ProxyError(rawValue: failure.proxyErrorName) ?? .proxyInternalError, nextHop: origin.hostAndPort)
    }
}

extension TransferFailure {
    /// A request that was not attempted because the upstream is unreachable or switched off. While it is offline, the kind is that of the
    /// last recorded failure.
    static func notTried(_ reason: Reachability.Reason, _ last: String?) -> TransferFailure {
        let kind: Kind =
            switch last {
            case "dns_error" where reason == .offline: .dns
            case _ where reason != .offline: .unavailable
            case "connection_timeout": .connectTimeout
            case "connection_read_timeout": .firstByteTimeout
            default: .refused
            }
        return TransferFailure(kind: kind, sent: .no, detail: "not tried, the upstream is \(reason.rawValue)")
    }

    /// The failure as a reachability event; nil if it shows nothing about reachability.
    var reachabilityKind: Reachability.FailureKind? {
        switch kind {
        case .dns: .dns
        case .refused: .refused
        case .connectTimeout: .connectTimeout
        case .tls: .tls
        case .reset: .reset
        case .firstByteTimeout: .firstByteTimeout
        case .denied, .cancelled, .unavailable, .idleTimeout, .protocolError, .tooManyInterim: nil
        }
    }
}
