// Relays of writes: learned from the pipeline for requests that differ in nothing but their bodies (docs/architecture.md#relays).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore

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
