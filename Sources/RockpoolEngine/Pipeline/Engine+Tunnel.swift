// What the engine says of tunnels and upgrades, whose bytes it does not see (RFC 9110 §9.3.6, §7.8).
package import RockpoolCore

extension Engine {
    /// Why no connection may be made to `origin` now; nil when one may.
    package func refusalToConnect(to origin: OriginAddress) -> String? {
        // A tunnel to a declared host leads there whatever scheme it is declared with.
        let upstream = (upstream(for: origin) ?? routes.upstreams.first { $0.origin.host == origin.host && $0.origin.port == origin.port })?
            .name
        guard case .no = reachability.permission(for: upstream, now: now()) else { return nil }
        return "\(origin.hostAndPort) is offline"
    }

    /// The reply when `origin` could not be connected to: the same words in the same fields as for any other exchange.
    package func problem(for failure: TransferFailure, connectingTo origin: OriginAddress) -> Reply {
        var trace = Trace(method: "", url: "", startedAt: now())
        let type: ProblemType =
            failure.kind == .denied ? .forbiddenTarget : failure.kind.isTimeout ? .upstreamTimeout : .upstreamError
        var reply = reply(type, failure, from: origin, upstream(for: origin), &trace)
        deliver(&reply, trace)
        return reply
    }
}
