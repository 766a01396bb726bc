// Decides whether a response comes from the upstream itself, or from a portal or login page in its place
// (docs/caching.md#portals-and-probes).
import HTTPTypes
import RockpoolCore

/// Judges responses of `offline-first` upstreams by their signs, by the upstream's reachability and by probes.
struct PortalCheck: Sendable {
    let reachability: ReachabilityTable
    let upstreams: UpstreamClient
    let now: @Sendable () -> Timestamp

    /// True if something else may respond in place of an `offline-first` upstream. Then nothing is stored.
    func isDoubted(plan: RoutePlan) -> Bool {
        plan.policy == .offlineFirst && !reachability.isTrusted(plan.upstream?.name)
    }

    /// The sign by which a response may come from something else in the upstream's place; nil without one. Notes nothing.
    func sign(of head: ResponseHead, to context: RequestContext, stored: [StoredResponse]) -> PortalSuspicion? {
        PortalSuspicion.judge(head, to: context.request, stored: stored, isDeclared: declared(context.plan) != nil)
    }

    /// The upstream that a probe can confirm.
    func declared(_ plan: RoutePlan) -> Upstream? { plan.policy == .offlineFirst ? plan.upstream : nil }

    /// The reason why the response is not accepted as the upstream's own; nil if it is accepted.
    /// - Parameter stored: Stored responses of the key, as examples of the upstream's own responses.
    func suspicion(of head: ResponseHead, to context: RequestContext, stored: [StoredResponse]) -> PortalSuspicion? {
        guard let suspicion = sign(of: head, to: context, stored: stored) else { return nil }
        guard let declared = declared(context.plan) else { return suspicion }
        let stands = reachability.suspect(
            declared.name, url: context.request.url, sign: suspicion.detail, hasExpectation: declared.hasExpectation, now: now())
        if suspicion == .login { reachability.record(.portalSeen(detail: suspicion.detail), for: declared.name, now: now()) }
        return stands || suspicion == .login ? suspicion : nil
    }

    /// True unless the response is odd and the probe does not confirm the upstream. A response is odd if a portal could have sent it in
    /// place of a good copy: a 200 without the validators that its stored copy has, or a 3xx. Applies to probes with an expectation.
    func accepts(_ head: ResponseHead, plan: RoutePlan, stored: [StoredResponse], receivedAt: Timestamp) async -> Bool {
        guard plan.policy == .offlineFirst, let upstream = plan.upstream, upstream.hasExpectation else { return true }
        let good = stored.map(\.head).filter { $0.status == 200 }
        let isOdd =
            switch head.status {
            case 200: !head.hasValidator && good.contains(where: \.hasValidator)
            case 300...399: !good.isEmpty
            default: false
            }
        return isOdd ? await upstreams.confirm(upstream, since: receivedAt) : true
    }

    /// True if the probe confirms that the response came from the upstream; also true if the probe has no expectation, or the policy is
    /// `standard`.
    func isConfirmed(plan: RoutePlan, since moment: Timestamp) async -> Bool {
        guard plan.policy == .offlineFirst, let upstream = plan.upstream else { return true }
        return await upstreams.confirm(upstream, since: moment)
    }
}

extension ResponseHead {
    /// True if the response can be revalidated (RFC 9110 §8.8).
    var hasValidator: Bool { fields.contains(.eTag) || fields.contains(.lastModified) }
}
