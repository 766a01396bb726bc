// Decides whether a response comes from the upstream itself, or from a portal or login page in its place
// (docs/caching.md#portals-and-probes).
import HTTPTypes
import RockpoolCore
import Synchronization

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
    func sign(of head: ResponseHead, hasBody: Bool = true, to context: RequestContext, stored: [StoredResponse]) -> PortalSuspicion? {
        let suspicion = PortalSuspicion.judge(head, to: context.request, stored: stored, hasBody: hasBody)
        // Where nothing can be lost, only the owner's consent to `offline-first` permits to keep nothing.
        return suspicion?.basis == .accept && declared(context.plan) == nil ? nil : suspicion
    }

    /// The upstream that a probe can confirm.
    func declared(_ plan: RoutePlan) -> Upstream? { plan.policy == .offlineFirst ? plan.upstream : nil }

    /// True if the response shows no sign; then the doubt of its URL ends.
    func isOwn(_ reply: OriginReply, to context: RequestContext, stored: [StoredResponse]) -> Bool {
        let hasBody = reply.hasBody(to: context.request)
        guard sign(of: reply.head, hasBody: hasBody, to: context, stored: stored) == nil else { return false }
        if context.request.method == .get, PortalSuspicion.showsUpstream(reply.head, hasBody: hasBody) {
            reachability.endDoubt(at: place(of: context))
        }
        return true
    }

    private func place(of context: RequestContext) -> Doubts.Place {
        Doubts.Place(
            upstream: context.plan.upstream?.name ?? context.request.origin.url, url: context.request.url,
            manner: context.request.fields[.accept] ?? "")
    }

    /// The reason why the response is not accepted as the upstream's own; nil if it is accepted.
    /// - Parameter stored: Stored responses of the key, as examples of the upstream's own responses.
    func suspicion(of reply: OriginReply, to context: RequestContext, stored: [StoredResponse]) -> PortalSuspicion? {
        let head = reply.head
        guard let suspicion = sign(of: head, hasBody: reply.hasBody(to: context.request), to: context, stored: stored) else { return nil }
        let declared = declared(context.plan)
        if suspicion.sign == .login {
            reachability.record(.portalSeen(detail: suspicion.detail), for: declared?.name, now: now())
            return suspicion
        }
        let sighting = Doubts.Sighting(
            sign: "\(head.status) \(suspicion.detail)", isEvidence: suspicion.basis == .copy && declared != nil,
            hasNewValidator: head.hasValidator && !stored.contains { $0.head.hasValidator(of: head) })
        let hasExpectation = declared?.hasExpectation == true
        let verdict = reachability.note(
            sighting, at: place(of: context), hasExpectation: hasExpectation,
            asksProbe: declared != nil && (hasExpectation || sighting.isEvidence), now: now())
        return verdict == .believed ? nil : suspicion
    }

    /// True unless the response is odd and the probe does not confirm the upstream. A response is odd if a portal could have sent it in
    /// place of a good copy: a 2xx without the validators that its stored copy has, a page where none is stored, or a 3xx. Applies to
    /// probes with an expectation.
    func accepts(_ head: ResponseHead, plan: RoutePlan, stored: [StoredResponse], receivedAt: Timestamp) async -> Bool {
        guard plan.policy == .offlineFirst, let upstream = plan.upstream, upstream.hasExpectation else { return true }
        let good = stored.map(\.head).filter { $0.status == 200 }
        let isOdd =
            switch head.status {
            case 200...299:
                !head.hasValidator && good.contains(where: \.hasValidator)
                    || !good.isEmpty && MediaType.isPage(head.fields) && !good.contains { MediaType.isPage($0.fields) }
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

    /// True if it has one of the validators of `other`.
    fileprivate func hasValidator(of other: ResponseHead) -> Bool {
        [HTTPField.Name.eTag, .lastModified].contains { other.fields[$0] != nil && other.fields[$0] == fields[$0] }
    }
}

extension OriginReply {
    /// False if the response to `request` is known to have no body (RFC 9110 §6.4.1).
    func hasBody(to request: RequestHead) -> Bool {
        length != 0 && request.method != .head && ![204, 205, 304].contains(head.status)
    }
}

// MARK: - Good copies

/// Redirects, empty responses, 404 and 410 that would replace stored copies. One caused by a portal, a mistake or a single request soon
/// disappears; one sent by the origin recurs (docs/caching.md#good-copies, docs/security-model.md#good-copies).
final class Sightings: Sendable {
    private struct Sighting {
        var status: Int
        var location: String
        var last: Timestamp
        /// Number of sightings of a redirect after the first, each at least `pace` after the one before.
        var confirmations = 0
    }

    /// Maximum number of URLs recorded.
    static let limit = 1024
    /// Redirects closer together than this count as one.
    private static let pace = TimeSpan.seconds(1)
    private static let confirmationsNeeded = 2
    /// The times between which what is no redirect must be seen a second time; a client that reloads need not wait.
    private static let apart = TimeSpan.minutes(1)
    private static let window = TimeSpan.hours(1)

    private let sightings = Mutex<[String: Sighting]>([:])

    /// Records a response to a request that may store it.
    /// - Parameters:
    ///   - identity: of the partition that would store it; redirects count in all together.
    ///   - copiedAt: When the copy was received or last validated; what is no redirect and was seen before then is contradicted by the copy.
    ///   - isReload: True if the client wants no stored response.
    /// - Returns: True if the same redirect was seen twice after the first time, or the same other response once within the last hour: a
    ///   minute ago or earlier, or by a client that reloads now.
    func confirm(
        _ head: ResponseHead, of url: String, in identity: String, copiedAt: Timestamp, isReload: Bool, now: Timestamp
    ) -> Bool {
        let location = head.fields[.location] ?? ""
        let isRedirect = (300...399).contains(head.status)
        let subject = isRedirect ? url : "\(identity) \(url)"
        return sightings.withLock { sightings in
            guard var known = sightings[subject], known.status == head.status, known.location == location,
                isRedirect || (known.last >= copiedAt && now - known.last <= Self.window)
            else {
                if sightings.count >= Self.limit { sightings.removeAll() }
                sightings[subject] = Sighting(status: head.status, location: location, last: now)
                return false
            }
            if !isRedirect { return isReload || now - known.last >= Self.apart }
            if (now - known.last).magnitude >= Self.pace {
                known.confirmations += 1
                known.last = now
                sightings[subject] = known
            }
            return known.confirmations >= Self.confirmationsNeeded
        }
    }
}
