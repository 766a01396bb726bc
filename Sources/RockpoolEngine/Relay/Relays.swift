// The requests that are passed on without the read pipeline: learned from it, and forgotten with whatever they stand on
// (docs/architecture.md#relays).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore

/// The rules of the relays. The pipeline shows twice how it treats a request: what it sends, then what it makes of the response. While nothing
/// of that can have changed, requests that agree in what its decisions look at (`RequestShape`) need no pipeline.
package final class Relays: Sendable {
    /// The time after which a rule is learned anew.
    private static let lifetime = TimeSpan.seconds(5)

    private let cache: CacheStore
    private let data: DataStore
    private let reachability: ReachabilityTable
    private let statistics: Statistics
    private let overlay: WriteOverlay
    let reads: ReadPipeline
    let writes: WritePipeline
    let active: ActiveConfiguration
    private let ring: ExchangeRing
    let finalFields: FinalFields
    let now: @Sendable () -> Timestamp
    let identities: RecentIdentities
    let readRules = RelayRules<ReadRule> { $0.validity.until }
    let writeRules = RelayRules<WriteRule> { $0.validity.until }

    init(
        cache: CacheStore, data: DataStore, reachability: ReachabilityTable, statistics: Statistics, overlay: WriteOverlay,
        reads: ReadPipeline, writes: WritePipeline, active: ActiveConfiguration, ring: ExchangeRing, finalFields: FinalFields,
        now: @escaping @Sendable () -> Timestamp
    ) {
        (self.cache, self.data, self.reachability, self.statistics) = (cache, data, reachability, statistics)
        identities = RecentIdentities(cache: cache)
        (self.overlay, self.reads, self.writes, self.active, self.ring, self.now) = (overlay, reads, writes, active, ring, now)
        self.finalFields = finalFields
    }

    // MARK: use

    /// True if the pipeline would decide as it did when a rule was learned.
    /// - Parameter target: of the request.
    func isValid(_ validity: RelayValidity, of plan: RoutePlan, at target: String) -> Bool {
        isCurrent(validity) && !isOverlaid(plan, at: target)
    }

    /// True if nothing has changed that the pipeline decides by, but for queued writes.
    func isCurrent(_ validity: RelayValidity) -> Bool {
        let moment = now()
        return moment < validity.until && moment > validity.until - Self.lifetime - .seconds(1) && validity.epoch == reachability.epoch
            && cache.isUnchanged(validity.slots, since: validity.moment) && data.localIDs.isEmpty
    }

    /// True if queued writes may affect what a request reads.
    func isOverlaid(_ plan: RoutePlan, at target: String) -> Bool {
        guard let upstream = plan.upstream?.name else { return false }
        return overlay.files.covers(upstream: upstream, path: FilePath(target))
            || plan.entity?.name.map { overlay.covers(upstream: upstream, collection: $0.canonical { _, _ in nil }) } == true
    }

    // MARK: learning

    /// The state of the cache before a request is looked up; nil if the request is not to be learned.
    func moment(of exchange: Exchange) -> UInt64? { exchange.plain == nil && exchange.plainWrite == nil ? nil : cache.hotMoment }

    /// Learns from an exchange of the full path that has its reply.
    /// - Parameter moment: `moment(of:)` before the exchange.
    func learn(from exchange: Exchange, _ reply: Reply, since moment: UInt64?) {
        guard let moment else { return }
        if let plain = exchange.plainWrite, let passed = reply.passedWrite {
            return learnWrite(passed, of: exchange, as: plain, reply, since: moment)
        }
        guard let plain = exchange.plain, let passed = reply.passed, !passed.identity.isFormer, passed.identity.signature.isEmpty,
            mayRelay(passed, of: exchange)
        else { return }
        // Whoever is told apart by another field is no example for those without it.
        let (head, request) = (plain.head, plain.arrival.request)
        guard passed.configured.allSatisfy({ request.value(of: $0, in: head.readableBytesUInt8Span) == nil }) else { return }
        if let credential = plain.arrival.credential {
            identities.note(passed.identity, of: credential, at: passed.request.head.origin, since: moment, now: now())
        }
        learnRead(passed, of: exchange, as: plain, reply, since: moment)
    }

    func validity(since moment: UInt64, keys: [String], credential: String?) -> RelayValidity {
        RelayValidity(
            until: now() + Self.lifetime, epoch: reachability.epoch, moment: moment, slots: cache.slots(of: keys, credential: credential))
    }

    /// True for a plain read on a connection that others may have used.
    private func mayRelay(_ passed: PassedRead, of exchange: Exchange) -> Bool {
        let request = passed.request
        guard request.head.method == .get, case .none = request.body, !passed.plan.isWrite, passed.plan.route?.kind != .graphql else {
            return false
        }
        return !request.needsFreshConnection && mayRelay(request, by: passed.plan, of: exchange)
    }

    /// True for a request to an upstream without budgets, by way of no other proxy, with bodies that are passed on unchanged.
    func mayRelay(_ request: OutboundRequest, by plan: RoutePlan, of exchange: Exchange) -> Bool {
        guard plan.route?.logout != true, plan.upstream?.rateLimit == nil, exchange.forwarded.isEmpty, exchange.signer == nil else {
            return false
        }
        if plan.isWrite, plan.entity?.resource?.mark != nil { return false }
        if exchange.gateway != nil, plan.upstream?.gatewaySettings?.rewriting == .jsonURLs { return false }
        return request.via == nil && request.peer == nil && request.allowsLoopback && !request.head.fields.contains(.te) && !data.isOfFleet
            && active.configuration.fleet.parents.count < 2
            && request.head.fields[.authorization]?.first.map { !"nN".contains($0) } ?? true
    }

    // MARK: records

    /// The value of `Date` for a response without one (RFC 9110 §6.6.1).
    package var date: String { HTTPDate.format(now()) }

    /// Records the arrival of a response head that matches.
    package func answered(_ relay: Relay) { reachability.record(.answered, for: relay.basis.plan.upstream?.name, now: now()) }

    /// What a relay has sent and received, and when.
    package struct Course {
        package var received: Int64
        /// When the request had been received.
        package var began: ContinuousClock.Instant
        /// The time until the head of the response was sent.
        package var head: Duration
        package var end: ReplyEnd

        package init(received: Int64, began: ContinuousClock.Instant, head: Duration, end: ReplyEnd) {
            (self.received, self.began, self.head, self.end) = (received, began, head, end)
        }
    }

    /// Records the end of an exchange whose response was relayed.
    /// - Parameter fields: the lines of the response that are not those of the template, with their line ends.
    package func ended(_ relay: Relay, by template: RelayTemplate, fields: ByteBuffer, _ course: Course) {
        record(relay, relay.basis.trace, course) {
            var response = ResponseHead(status: template.status, fields: template.fields)
            for line in fields.readableBytesView.split(separator: 0x0A) {
                guard let field = try? ResponseGate.field(ofLine: ArraySlice(line.dropLast())) else { continue }
                response.fields.append(field)
            }
            return response
        }
    }

    /// Records the end of an exchange that was answered from the store after a 304.
    package func ended(_ relay: Relay, validated reply: Reply, _ course: Course) {
        record(relay, reply.trace, course) { reply.head }
    }

    private func record(_ relay: Relay, _ trace: Trace, _ course: Course, response: () -> ResponseHead) {
        statistics.countRelay()
        statistics.count(trace, took: course.head)
        statistics.deliver(course.end.bytes, of: trace)
        relay.basis.request.spent(Int64(relay.bytes.readableBytes), course.received)
        let moment = now()
        let represents = ring.admit(isNotable: course.end.error != nil, at: moment)
        guard represents > 0 else { return }
        let sent = relay.sent
        var trace = Trace(trace, url: sent.url, startedAt: moment)
        trace.identity = relay.identity
        let full = RecordedExchange.FullExchange(
            trace: trace, request: sent.fields, response: response(), end: course.end, began: course.began, head: course.head,
            whole: ContinuousClock.now - course.began)
        ring.append(.full(full.kept), at: moment, represents: represents)
    }
}
