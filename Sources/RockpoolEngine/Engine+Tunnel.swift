// Permissions and errors for tunnels and upgrades, which bypass the engine (RFC 9110 §9.3.6, §7.8).
package import RockpoolCore

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
