// The step `fetch`: sends one request upstream if reachability permits, and records the outcome.
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension Engine {
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
            if case .no(let reason) = context.permission { throw .notTried(reason, lastFailure(context.plan.upstream)) }
            let upstream = context.plan.upstream
            let reply = try await send(
                head, body, upstream: upstream, allowsLoopback: upstream?.allowsLoopback == true || context.exchange.isLocalClient,
                freshConnection: freshConnection, interim: context.exchange.interim,
                isOwn: { PortalSuspicion.judge($0, to: context.request, stored: stored, isDeclared: upstream != nil) == nil })
            context.trace.record(.fetched(status: reply.head.status))
            await prove(context.identity, by: reply.head, to: context.request, at: context.plan.upstream)
            return await learning(from: reply, to: context)
        } catch {
            context.trace.record(.failed(error))
            throw error
        }
    }

    /// Sends `head` to its origin and records the outcome in the reachability table. Used by every part of the engine.
    /// - Parameter isOwn: Returns true if a response is assumed to come from the upstream itself. Only such a response counts as a sign of
    ///   reachability.
    func send(
        _ head: RequestHead, _ body: OutboundRequest.Body, upstream: Upstream?, allowsLoopback: Bool? = nil, freshConnection: Bool = false,
        interim: @escaping @Sendable (ResponseHead) -> Void = { _ in }, isOwn: (ResponseHead) -> Bool = { _ in true }
    ) async throws(TransferFailure) -> OriginReply {
        var request = OutboundRequest(
            head: head, body: body, timeouts: upstream?.timeouts ?? UpstreamTimeouts(), tls: upstream?.tls ?? TLSSettings(),
            via: upstream?.via, allowsLoopback: allowsLoopback ?? upstream?.allowsLoopback ?? true, needsFreshConnection: freshConnection,
            interim: { interim(ResponseHead(status: $0.status, fields: HopByHop.stripped(answer: $0.fields))) }
        ) { [reachability, now] bytes, duration in
            reachability.record(bytes, in: duration, for: upstream?.name, now: now())
        }
        request.isDeclared = upstream != nil
        if reachability.isSwitchedOff(upstream?.name) { throw .notTried(.switchedOff, nil) }
        do {
            var reply = try await origin.send(request)
            if isOwn(reply.head) { reachability.record(.answered, for: upstream?.name, now: now()) }
            if clock.confirm(by: reply.head, wall: now()) { cache.pausesExpiry = false }
            reply.head.fields = HopByHop.stripped(answer: reply.head.fields)
            return reply
        } catch {
            if let kind = error.reachabilityKind {
                reachability.record(.failed(kind, detail: error.proxyErrorName), for: upstream?.name, now: now())
            }
            throw error
        }
    }

    func lastFailure(_ upstream: Upstream?) -> String? { upstream.flatMap { reachability.machine(of: $0.name)?.lastError } }

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
        return reply(
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
