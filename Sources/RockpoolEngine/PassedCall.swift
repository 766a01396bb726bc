// What passes beside the pipeline: calls of gRPC, with what is sent for one, what its client gets, and the record of it
// (docs/guide/programs.md#grpc), and tunnels.
import HTTPTypes
package import RockpoolCore

/// One call. Its messages never come here.
package struct PassedCall: Sendable {
    /// The request as it is sent.
    package private(set) var request: RequestHead
    private let engine: Engine
    private let upstream: Upstream?
    private let gateway: GatewayAddress?
    private let client: ClientID?
    /// The fields of the request for its record.
    private let received: HTTPFields
    private let span: TraceSpan?
    private let began = ContinuousClock.now
    private var trace: Trace
    /// The head that the client got, and when.
    private var reply: (head: ResponseHead, after: Duration)?

    /// Begins the record of a call.
    ///
    /// Throws `Refusal` for invalid `Rockpool-` fields.
    package init(_ exchange: Exchange, by engine: Engine) throws(Refusal) {
        var exchange = exchange
        exchange.takeGatewayMark()
        (self.engine, gateway, client) = (engine, exchange.gateway, exchange.account?.client)
        let now = engine.now()
        trace = Trace(method: exchange.request.method.rawValue, url: exchange.request.url, startedAt: now)
        span = engine.traces.begin(&exchange.request.fields)
        _ = try WritePreferences(
            taking: &exchange.request.fields, now: now, callbacks: engine.configuration.callbacks.origins)
        let plan = engine.routes.plan(for: exchange.request)
        upstream = plan.upstream
        trace.record(.routed(upstream: plan.upstream?.name, category: plan.category?.name, strategy: plan.strategy))
        trace.record(.decided("a call of gRPC is passed on"))
        trace.cacheStatus = CacheStatus(hit: false, fwd: .method)
        // Its secrets are not recorded.
        trace.identity = engine.credentials.identity(of: exchange.request, rule: plan.upstream?.identity ?? .auto)
        received = exchange.request.fields
        request = exchange.forwarding(exchange.request)
        for name in HTTPField.Name.keptWithWrites { request.fields[name] = nil }
        _ = engine.statistics.traffic.via.prepare(&request, rule: plan.upstream?.sendVia ?? .auto, name: engine.viaName, now: now)
        engine.upstreams.budgets.spend(plan.upstream, on: request, now: now)
    }

    /// Returns the head for the client of the upstream's answer.
    package mutating func answered(_ head: ResponseHead) -> ResponseHead {
        let now = engine.now()
        engine.reachability.record(.answered, for: upstream?.name, now: now)
        engine.reachability.hear(upstream?.name, now: now)
        trace.record(.fetched(status: head.status))
        return reply(with: ResponseHead(status: head.status, fields: HopByHop.stripped(answer: head.fields)))
    }

    /// Takes the failure of a call whose upstream cannot be reached, or left before it had answered.
    /// - Returns: The head that ends it; nil if the client has got one already.
    package mutating func failed(_ failure: TransferFailure) -> ResponseHead? {
        if let kind = failure.reachabilityKind {
            let witness = Reachability.Witness(target: request.target, client: client)
            engine.reachability.record(
                .failed(kind, detail: failure.proxyErrorName, witness: witness), for: upstream?.name, now: engine.now())
        }
        trace.verdict = .failed
        trace.record(.failed(failure))
        trace.note(failure: failure, origin: request.origin)
        return reply == nil ? reply(with: RemoteCall.unavailableReply(detail(of: failure))) : nil
    }

    /// A failure in words.
    package func detail(of failure: TransferFailure) -> String {
        "\(request.origin.hostAndPort): \(failure.detail.isEmpty ? failure.kind.rawValue : failure.detail)"
    }

    private mutating func reply(with head: ResponseHead) -> ResponseHead {
        var reply = Reply(head: head, body: .none(length: nil), trace: trace)
        engine.finalFields.add(to: &reply, trace: trace, gateway: gateway, hidesTags: upstream?.tags == .hide)
        self.reply = (reply.head, .now - began)
        return reply.head
    }

    /// Takes the record of the call at its end.
    /// - Parameters:
    ///   - sent: bytes of its client's messages.
    ///   - received: bytes of its upstream's messages.
    ///   - error: the cause, if the client did not get its end; nil if it did.
    package func end(sent: Int64, received: Int64, error: String?) {
        let took = ContinuousClock.now - began
        engine.statistics.traffic.count(upstream?.name, sent: sent, received: received, forClient: true)
        engine.statistics.count(trace, took: reply?.after ?? took)
        engine.record(
            RecordedExchange.FullExchange(
                trace: trace, request: self.received, response: reply?.head ?? ResponseHead(status: 0),
                end: ReplyEnd(bytes: received, error: error), began: began, head: reply?.after ?? took, whole: took),
            span: span)
    }
}

// MARK: - Tunnels

/// Permissions and errors for tunnels and upgrades, which bypass the engine (RFC 9110 §9.3.6, §7.8).
extension Engine {
    /// The reason why no connection to `origin` may be made now; nil if one may.
    package func refusalToConnect(to origin: OriginAddress) -> String? {
        // A tunnel reaches a declared host whatever scheme the host is declared with.
        let upstream = (upstream(for: origin) ?? routes.upstreams.first { $0.origin.host == origin.host && $0.origin.port == origin.port })?
            .name
        guard case .no = reachability.permission(for: upstream, now: now()) else { return nil }
        return "\(origin.hostAndPort) is offline"
    }

    /// The reason why no call may be made to `origin` now; nil if one may. A call is made although its upstream seems to be away: nothing else
    /// could answer it.
    package func refusalToCall(_ origin: OriginAddress) -> String? {
        reachability.isSwitchedOff(upstream(for: origin)?.name) ? "\(origin.hostAndPort) is offline" : nil
    }

    /// Returns the reply after a failed connection to `origin`, with the same problem document and fields as for other exchanges.
    package func problem(for failure: TransferFailure, connectingTo origin: OriginAddress) -> Reply {
        var trace = Trace(method: "", url: "", startedAt: now())
        let type: ProblemType =
            failure.kind == .denied ? .forbiddenTarget : failure.kind.isTimeout ? .upstreamTimeout : .upstreamError
        var reply = Reply(failed: failure, as: type, origin: origin, upstream: upstream(for: origin), trace: &trace)
        finalFields.add(to: &reply, trace: trace)
        return reply
    }
}
