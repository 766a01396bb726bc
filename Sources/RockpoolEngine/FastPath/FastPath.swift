// The hot path: a response just served from memory is kept ready, so that the same request needs no full pipeline
// (docs/architecture.md#parts *memory tier*).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore

/// A plain request that takes the full path, kept until its response is known.
package struct PlainCopy: Sendable {
    fileprivate let arrival: PlainArrival

    /// - Parameter bytes: Readable from the request's first byte on.
    package init(_ request: FastPathRequest, in bytes: ByteBuffer, listener: String) {
        arrival = PlainArrival(request, in: bytes, listener: listener).kept
    }
}

/// The prepared reply to a plain request: `bytes`, then `body` unless it is already part of `bytes`.
package struct ReadyReply: Sendable {
    package let bytes: ByteBuffer
    package let body: ByteBuffer?

    fileprivate init(_ message: HotMessage) { (bytes, body) = (message.bytes, message.body) }
}

/// Prepares and sends the replies that are served without the read pipeline.
package final class FastPath: Sendable {
    private let cache: CacheStore
    private let data: DataStore
    private let credentials: Credentials
    private let statistics: Statistics
    private let overlay: WriteOverlay
    private let lookup: EntryLookup
    private let active: ActiveConfiguration
    private let finalFields: FinalFields
    private let now: @Sendable () -> Timestamp

    init(
        cache: CacheStore, data: DataStore, credentials: Credentials, statistics: Statistics, overlay: WriteOverlay, lookup: EntryLookup,
        active: ActiveConfiguration, finalFields: FinalFields, now: @escaping @Sendable () -> Timestamp
    ) {
        (self.cache, self.data, self.credentials, self.statistics, self.overlay) = (cache, data, credentials, statistics, overlay)
        (self.lookup, self.active, self.finalFields, self.now) = (lookup, active, finalFields, now)
    }

    /// Returns the prepared reply to a plain request; nil if the request needs the full path. Callable on an event loop.
    ///
    /// - Parameters:
    ///   - bytes: Readable from the request's first byte on.
    ///   - listener: `host:port` of the listener that received the request.
    ///   - serialise: Serialises a head with the given body length.
    package func hotReply(
        to request: FastPathRequest, in bytes: ByteBuffer, at listener: String, serialise: (ResponseHead, Int) -> ByteBuffer
    ) -> ReadyReply? {
        let now = now()
        switch cache.hot(PlainArrival(request, in: bytes, listener: listener), now: now) {
        case nil: return nil
        case .message(let message):
            statistics.countHotHit()
            return ReadyReply(message)
        case .undated(let hot):
            let freshness = Freshness.of(hot.entry.response, now: now)
            guard freshness.isFresh else { return nil }
            let head = hotHead(of: hot.entry, freshness: freshness)
            let message = HotMessage(
                head: serialise(head, hot.body.readableBytes), body: hot.body, validFrom: now,
                validUntil: now + freshness.unchanging(at: now))
            cache.keep(message, of: hot)
            statistics.countHotHit()
            return ReadyReply(message)
        }
    }

    /// Returns the head of a fresh hit at this moment, the same as the full path produces.
    private func hotHead(of entry: CacheEntry, freshness: Freshness) -> ResponseHead {
        var trace = Trace(method: "GET", url: "", startedAt: now())
        trace.cacheStatus = CacheStatus(hit: true, ttl: freshness.remaining.seconds)
        var reply = Reply(head: entry.response.head, body: .none(length: nil), trace: trace)
        reply.head.fields[.age] = String(freshness.age.seconds)
        finalFields.add(to: &reply, trace: trace)
        return reply.head
    }

    /// True if queued writes may affect the stored response. Such a response is never kept ready.
    private func isOverlaid(_ plan: RoutePlan) -> Bool {
        guard let upstream = plan.upstream?.name, let collection = plan.entity?.collection else { return false }
        let alias = { self.data.localIDs.alias(upstream: upstream, collection: $0, id: $1) }
        return overlay.covers(upstream: upstream, collection: collection.canonical(alias))
    }

    /// Keeps the reply to a plain request ready if it is a fresh, shared response with its body in memory.
    ///
    /// `hotMoment` is read first, then all conditions are checked again: any change after that moment discards the prepared reply.
    /// - Parameter gateway: The gateway of the request. A reply that is translated for its clients is never kept ready.
    package func warm(_ plain: PlainCopy, for request: RequestHead, through gateway: GatewayAddress? = nil) async {
        let moment = cache.hotMoment
        let plan = active.routes.plan(for: request)
        let rule = plan.upstream?.identity ?? .auto
        let identity = credentials.identity(of: request, rule: rule)
        guard !plan.isWrite, plan.strategy.servesFreshUnasked, identity.secrets.isEmpty, !request.fields.contains(.origin) else { return }
        let own = lookup.key(of: request, plan: plan, in: .own(identity.partition))
        let shared = lookup.key(of: request, plan: plan, in: .shared)
        guard let found = try? await cache.lookup([own, shared]) else { return }
        let rules = ReuseContext(policy: plan.policy, strategy: plan.strategy)
        let decision = lookup.reuse(of: found.map(\.response), for: request, rules: rules, now: now())
        let isTranslated = { (head: ResponseHead) in
            gateway != nil && (GatewayAddress.mayConcern(head.fields) || plan.upstream?.gatewaySettings?.rewriteBodies.isEmpty == false)
        }
        guard !isOverlaid(plan), case .fresh(let index, _) = decision, found[index].key == shared, found[index].response.head.isSentWhole,
            !isTranslated(found[index].response.head),
            !Vary.isBySecret(found.map(\.response)),
            let body = cache.bodyInMemory(of: found[index])
        else { return }
        // `Origin` always selects: a reply without permission for a page must not be served to it (docs/caching.md#pages-of-other-origins).
        let names = Set(found.flatMap { $0.response.validity.varyNames ?? [] } + [.origin]).sorted { $0.canonicalName < $1.canonicalName }
        let hot = FastPathReply(found[index], body: body, for: plain.arrival, selecting: names, identityField: rule.fieldName)
        cache.keep(hot, sibling: own, since: moment)
    }
}

extension Strategy {
    /// True if the strategy serves a fresh response whatever the state of the upstream.
    fileprivate var servesFreshUnasked: Bool { self == .cacheFirst || self == .staleWhileRevalidate || self == .cacheOnly }
}

extension IdentityRule {
    fileprivate var fieldName: String? {
        if case .header(let name) = self { name } else { nil }
    }
}

extension ResponseHead {
    /// True if every GET receives the body of this response, with a `Content-Length`.
    fileprivate var isSentWhole: Bool { status >= 200 && status != 204 && status != 206 && status != 304 }
}

extension Freshness {
    /// The time for which the serialised head stays correct: until the next change of `Age`, `ttl` or `Date`.
    fileprivate func unchanging(at now: Timestamp) -> TimeSpan {
        let untilAge = 1000 - age.milliseconds % 1000
        let untilLeft = remaining.milliseconds % 1000 + 1
        let untilDate = 1000 - (now.milliseconds - now.seconds.multipliedClamped(by: 1000))
        return min(remaining, .milliseconds(min(untilAge, untilLeft, untilDate)))
    }
}
