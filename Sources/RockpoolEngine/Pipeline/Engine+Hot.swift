// Hot hits: what the full way has just answered from memory is kept ready to be sent again without it (docs/architecture.md#parts *memory
// tier*).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore

/// A plain request that went the full way, kept until it is known what answered it.
package struct PlainCopy: Sendable {
    fileprivate let arrival: PlainArrival

    /// - Parameter bytes: readable from the request's first byte on.
    package init(_ request: PlainRequest, in bytes: ByteBuffer, listener: String) {
        arrival = PlainArrival(request, in: bytes, listener: listener).kept
    }
}

/// What a plain request gets: these bytes, then those of the body where it does not lie behind its head.
package struct ReadyReply: Sendable {
    package let bytes: ByteBuffer
    package let body: ByteBuffer?

    fileprivate init(_ message: HotMessage) { (bytes, body) = (message.bytes, message.body) }
}

extension Engine {
    /// The reply to a plain request, ready to be sent; nil when it must be answered in full. Callable on an event loop.
    ///
    /// - Parameters:
    ///   - bytes: readable from the request's first byte on.
    ///   - listener: `host:port` it came to.
    ///   - serialise: writes a head with the length of its body.
    package func hotReply(
        to request: PlainRequest, in bytes: ByteBuffer, at listener: String, serialise: (ResponseHead, Int) -> ByteBuffer
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
            let head = hotHead(of: hot.entry, freshness)
            let message = HotMessage(
                head: serialise(head, hot.body.readableBytes), body: hot.body, validFrom: now,
                validUntil: now + freshness.unchanging(at: now))
            cache.keep(message, of: hot)
            statistics.countHotHit()
            return ReadyReply(message)
        }
    }

    /// The head that a fresh hit gets at this moment, as the full way makes it.
    private func hotHead(of entry: CacheEntry, _ freshness: Freshness) -> ResponseHead {
        var trace = Trace(method: "GET", url: "", startedAt: now())
        trace.cacheStatus = CacheStatus(hit: true, ttl: freshness.remaining.seconds)
        var reply = Reply(head: entry.response.head, body: .none(length: nil), trace: trace)
        reply.head.fields[.age] = String(freshness.age.seconds)
        deliver(&reply, trace)
        return reply.head
    }

    /// Whether writes may have to be folded into what is stored: that is never kept ready.
    private func isOverlaid(_ plan: RoutePlan) -> Bool {
        guard let upstream = plan.upstream?.name, let collection = plan.entity?.collection else { return false }
        let alias = { self.data.localIDs.alias(upstream: upstream, collection: $0, id: $1) }
        return overlay.covers(upstream: upstream, collection: collection.canonical(alias))
    }

    /// Keeps the answer to a plain request ready, when a fresh shared response in memory is all that it took.
    ///
    /// Everything that made it so is asked again here, after the moment is taken from which on any change counts.
    package func warm(_ plain: PlainCopy, for request: RequestHead) async {
        let moment = cache.hotMoment
        let plan = routes.plan(for: request)
        let rule = plan.upstream?.identity ?? .auto
        let identity = credentials.identity(of: request, rule: rule)
        guard !plan.isWrite, plan.strategy.servesFreshUnasked, identity.secrets.isEmpty else { return }
        let own = key(of: request, plan, in: .own(identity.partition))
        let shared = key(of: request, plan, in: .shared)
        guard let found = try? await cache.lookup([own, shared]) else { return }
        let context = ReuseContext(policy: plan.policy, strategy: plan.strategy)
        let decision = reuse(found.map(\.response), for: request, context, now: now())
        guard !isOverlaid(plan), case .fresh(let index, _) = decision, found[index].key == shared, found[index].response.head.isSentWhole,
            !Vary.isBySecret(found.map(\.response)),
            let body = cache.bodyInMemory(of: found[index])
        else { return }
        let names = Set(found.flatMap { $0.response.validity.varyNames ?? [] }).sorted { $0.canonicalName < $1.canonicalName }
        let hot = HotReply(found[index], body: body, for: plain.arrival, selecting: names, identityField: rule.fieldName)
        cache.keep(hot, sibling: own, since: moment)
    }
}

extension Strategy {
    /// Whether a fresh response is served under it whatever the upstream's state.
    fileprivate var servesFreshUnasked: Bool { self == .cacheFirst || self == .staleWhileRevalidate || self == .cacheOnly }
}

extension IdentityRule {
    fileprivate var fieldName: String? {
        if case .header(let name) = self { name } else { nil }
    }
}

extension ResponseHead {
    /// Whether its body goes with it to any GET, under a Content-Length.
    fileprivate var isSentWhole: Bool { status >= 200 && status != 204 && status != 206 && status != 304 }
}

extension Freshness {
    /// How long the head that says this stays as it is: until the next second of its age, of what is left, or of `Date`.
    fileprivate func unchanging(at now: Timestamp) -> TimeSpan {
        let untilAge = 1000 - age.milliseconds % 1000
        let untilLeft = remaining.milliseconds % 1000 + 1
        let untilDate = 1000 - (now.milliseconds - now.seconds.multipliedClamped(by: 1000))
        return min(remaining, .milliseconds(min(untilAge, untilLeft, untilDate)))
    }
}
