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

// MARK: - Reads

extension Relays {
    /// Returns the relay of a plain request; nil if the request needs the full path. Callable on an event loop.
    ///
    /// - Parameters:
    ///   - bytes: Readable from the request's first byte on.
    ///   - address: The client's IP address.
    ///   - keepsPath: False if the listener changes the path of some requests, or leads them to several upstreams.
    ///   - last: The last credential of the connection.
    package func relay(
        for request: FastPathRequest, in bytes: ByteBuffer, at listener: String, from address: String, keepsPath: Bool,
        isLocalClient: Bool, last: inout LastCredential
    ) -> Relay? {
        guard !request.isHead, !readRules.isEmpty else { return nil }
        let span = bytes.readableBytesUInt8Span.extracting(0..<request.length)
        let arrival = RequestShape.Arrival(listener: listener, isLocalClient: isLocalClient)
        var path = Self.path(of: request, in: span, keepsPath: keepsPath)
        var shape = RequestShape(of: request, in: span, at: arrival, path: path)
        var found = readRules[shape]
        if found == nil, path != nil {
            // One whose target is not sent as it was received is learned with its target.
            path = nil
            shape = RequestShape(of: request, in: span, at: arrival, path: nil)
            found = readRules[shape]
        }
        guard let rule = found else { return nil }
        let target = path.map { unsafe span.extracting($0).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) } }
        guard let head = rule.head(of: request, target: target ?? rule.received.target, in: span) else { return nil }
        guard isCurrent(rule.validity) else {
            readRules.forget(shape)
            return nil
        }
        let plan = head.target == rule.received.target ? rule.plan : active.routes.plan(for: head)
        guard plan.agrees(with: rule.plan), !isOverlaid(plan, at: head.target) else { return nil }
        var identity = rule.identity
        if let credential = last.digest(of: request, in: bytes) {
            // The pipeline sees each credential from time to time: answers prove it, or refuse it.
            guard let known = identities.identity(of: credential, at: head.origin, now: now()) else { return nil }
            identity = known
        }
        var exchange = Exchange(request: head, isLocalClient: isLocalClient)
        (exchange.clientAddress, exchange.gateway) = (address, rule.gateway)
        let context = RequestContext(
            exchange: exchange, trace: Trace(method: "GET", url: "", startedAt: now()),
            plan: plan, identity: identity, permission: .go, wishes: WritePreferences(),
            searchVariance: reads.lookup.searchVariance(for: head, plan: plan))
        let read = RelayedRead(
            context, by: reads, sight: writes.ownWrites.sight, finalFields: finalFields, mayLead: rule.leads,
            mayValidate: !request.isPartial && plan.entity?.resource?.mark == nil
        ) { rule.forget() }
        guard let read else { return nil }
        return rule.relay(of: request, target: head.target, in: span, as: read, by: identity)
    }

    /// Where the part of the target lies that may be another one in requests of the same shape; nil for none.
    private static func path(of request: FastPathRequest, in bytes: Span<UInt8>, keepsPath: Bool) -> Range<Int>? {
        keepsPath && !request.isPartial ? request.path(in: bytes) : nil
    }

    /// Learns from a read that was sent upstream.
    func learnRead(_ passed: PassedRead, of exchange: Exchange, as plain: PlainCopy, _ reply: Reply, since moment: UInt64) {
        guard mayLearn(from: passed, of: exchange, reply) else { return }
        let head = plain.head
        let (bytes, request) = (head.readableBytesUInt8Span, plain.arrival.request)
        var path = Self.path(of: request, in: bytes, keepsPath: plain.keepsPath)
        if let known = path,
            plain.arrival[known] != Array(passed.request.head.target.utf8) || passed.received.target != passed.request.head.target
        {
            path = nil
        }
        let arrival = RequestShape.Arrival(listener: plain.arrival.listener, isLocalClient: exchange.isLocalClient)
        let shape = RequestShape(of: request, in: bytes, at: arrival, path: path)
        if let known = readRules[shape], known.plan == passed.plan, isValid(known.validity, of: passed.plan, at: passed.received.target),
            known.sent(request, target: passed.request.head.target, in: bytes) == passed.request.head.message
        {
            // Without a response on a relay's connection there is nothing to learn; nor of a 304, whose fields are read each time.
            guard let early = exchange.early, early.isTaken, let use = passed.use,
                let template = RelayTemplate(of: early.head, answeredBy: reply.head, for: use)
            else { return }
            return known.learn(template)
        }
        let validity = validity(since: moment, keys: [Self.place], credential: nil)
        let rule = ReadRule(passed, of: plain, reply, gateway: exchange.gateway, validity: validity)
        if let rule { readRules.keep(rule, as: shape, at: now()) }
    }

    private func mayLearn(from passed: PassedRead, of exchange: Exchange, _ reply: Reply) -> Bool {
        switch passed.use {
        case .pass: true
        case nil:
            reply.head.status == 200 && exchange.plain?.arrival.request.isPartial == false && !exchange.request.fields.contains(.origin)
        // The end of a body with a digest is sent after the store has compared it.
        case .store:
            reply.head.status == 200 && !exchange.request.fields.contains(.origin)
                && !HTTPField.Name.digests.contains(where: reply.head.fields.contains) && passed.plan.entity == nil
                && passed.plan.searchVariance == nil
        case .write: false
        }
    }

    /// Any key, so that a change of the configuration ends a rule.
    static let place = "relays"
}

// MARK: - Writes: rules for those that differ in nothing but their bodies

extension Relays {
    /// Returns the relay of a plain write; nil if it needs the full path. Callable on an event loop.
    ///
    /// - Parameters:
    ///   - bytes: Readable from the request's first byte on.
    ///   - address: the client's IP address.
    package func relay(
        of write: PlainWrite, in bytes: ByteBuffer, at listener: String, from address: String, isLocalClient: Bool
    ) -> Relay? {
        guard let rule = rule(for: write, in: bytes, at: listener, isLocalClient: isLocalClient) else { return nil }
        guard isFree(for: rule), write.body.count <= rule.passed.upstream.queue.maxBody.bytes,
            let body = bytes.getSlice(at: bytes.readerIndex + write.body.lowerBound, length: write.body.count)
        else { return nil }
        // The receive buffer is soon reused.
        let kept = ByteBuffer(bytes: body.readableBytesView)
        // A URL of the gateway is written anew on the full path.
        if let links = rule.basis.links, links.isNamed(in: kept.readableBytesUInt8Span, .inward) { return nil }
        guard rule.passed.plan.obstacle(in: Array(kept.readableBytesView), of: rule.passed.received) == nil else { return nil }
        return rule.relay(of: write, in: bytes.readableBytesUInt8Span, body: kept, from: address, by: writes, now: now())
    }

    /// True if a plain write may be relayed once its body has arrived.
    package func expects(_ write: PlainWrite, in bytes: ByteBuffer, at listener: String, isLocalClient: Bool) -> Bool {
        rule(for: write, in: bytes, at: listener, isLocalClient: isLocalClient) != nil
    }

    private func rule(for write: PlainWrite, in bytes: ByteBuffer, at listener: String, isLocalClient: Bool) -> WriteRule? {
        guard !writeRules.isEmpty else { return nil }
        let span = bytes.readableBytesUInt8Span
        let shape = RequestShape(of: write, in: span, at: RequestShape.Arrival(listener: listener, isLocalClient: isLocalClient))
        guard let rule = writeRules[shape], rule.isFor(write, in: span) else { return nil }
        if isValid(rule.validity, of: rule.passed.plan, at: rule.passed.received.target) { return rule }
        writeRules.forget(shape)
        return nil
    }

    /// True if nothing can be before the next write of a rule: the outbox is empty, and no earlier attempt is under way in its lane; and its
    /// client has seen no version that becomes its condition.
    private func isFree(for rule: WriteRule) -> Bool {
        let (received, viewer) = (rule.passed.received, Viewer(partition: rule.passed.identity.partition))
        if received.changesState, writes.ownWrites.sight.ground(of: received.url, for: viewer).condition != nil { return false }
        let (upstream, lane, principal) = (rule.passed.upstream, rule.passed.operation.lane, rule.passed.operation.principal)
        let notifier = writes.notifier
        return writes.data.isKnownEmpty && writes.upstreams.isTrusted(upstream) && writes.upstreams.isReachable(upstream)
            && !notifier.laneHolds.holds(
                upstream: upstream.name, lane: lane, forProved: writes.credentials.isProved(principal), now: now())
            && !notifier.effectsUnderWay.contains(upstream: upstream.name, lane: lane, principal: principal)
    }

    /// Learns from a write that was sent while its client waited.
    func learnWrite(_ passed: PassedWrite, of exchange: Exchange, as plain: PlainWriteCopy, _ reply: Reply, since moment: UInt64) {
        guard mayRelay(passed.request, by: passed.plan, of: exchange), passed.plan.queueable else { return }
        let shape = plain.shape(isLocalClient: exchange.isLocalClient)
        let validity = validity(since: moment, keys: [Self.place], credential: passed.identity.credential)
        if let known = writeRules[shape], known.agrees(with: passed, as: plain),
            isValid(known.validity, of: passed.plan, at: passed.received.target)
        {
            // Without an answer on a relay's connection there is nothing to learn.
            guard let early = exchange.early, early.isTaken else { return }
            // The representation that a PUT may be answered with is read.
            if passed.received.method == .put, MediaType.isJSON(reply.head.fields) { return }
            if let template = RelayTemplate(of: early.head, answeredBy: reply.head, for: .write) {
                known.learn(template, validity: validity)
            }
            return
        }
        let near = OwnWritePlaces(
            AnsweredWrite(request: passed.received, body: nil, answer: reply.head, answerBody: nil, entity: passed.plan.entity))
        let rule = WriteRule(
            passed, as: plain, trace: reply.trace, gateway: exchange.gateway, places: places(of: passed),
            near: near.near(in: active.routes), validity: validity, now: now())
        if let rule { writeRules.keep(rule, as: shape, at: now()) }
    }

    /// The URLs whose copies a `POST` makes out of date, if that is all it does.
    private func places(of passed: PassedWrite) -> [String]? {
        let (request, plan) = (passed.received, passed.plan)
        guard request.method == .post, Invalidation.uploadedObject(of: request) == nil, FileWrite(request) == nil,
            WebDAVEffect(request) == nil, plan.strategy != .networkOnly
        else { return nil }
        return reads.updates.urls(after: ResponseHead(status: 200), to: request)
    }
}
