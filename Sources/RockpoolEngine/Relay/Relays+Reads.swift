// Relays of reads (docs/architecture.md#relays).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore

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
