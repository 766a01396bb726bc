// Relays of reads of which nothing is stored: learned from the pipeline for requests that differ in nothing but the URL
// (docs/architecture.md#relays).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension Relays {
    /// Returns the relay of a read of which nothing is stored; nil if the request needs the full path.
    func firstRead(for request: FastPathRequest, in bytes: Span<UInt8>, at listener: String, isLocalClient: Bool) -> Relay? {
        guard !firstReads.isEmpty, let shape = RequestShape(of: request, in: bytes) else { return nil }
        let hash = Self.hash(shape, in: bytes, listener)
        guard let rule = firstReads[hash], rule.isFor(shape, in: bytes, at: listener, isLocalClient: isLocalClient) else { return nil }
        var head = rule.received
        head.target = unsafe bytes.extracting(shape.path).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
        guard isValid(rule.validity, of: rule.plan, at: head.target) else {
            firstReads.forget(hash)
            return nil
        }
        guard active.routes.plan(for: head) == rule.plan, reads.lookup.searchVariance(for: head, plan: rule.plan) == nil else { return nil }
        let context = RequestContext(
            exchange: Exchange(request: head, isLocalClient: isLocalClient), trace: Trace(method: "GET", url: "", startedAt: now()),
            plan: rule.plan, identity: rule.identity, permission: .go, wishes: WritePreferences())
        let first = FirstRead(context, by: reads, sight: writes.ownWrites.sight) { rule.forget() }
        return first.map { rule.relay(of: head.target, by: $0) }
    }

    /// Learns from a read of which nothing was stored before; its response is stored.
    func learnFirstRead(_ passed: PassedRead, of exchange: Exchange, as plain: PlainCopy, _ reply: Reply, since moment: UInt64) {
        let head = plain.head
        let bytes = head.readableBytesUInt8Span
        let listener = plain.arrival.listener
        guard reply.head.status == 200, !exchange.request.fields.contains(.origin), passed.identity.signature.isEmpty,
            // The end of a body with a digest is sent after the store has compared it.
            !HTTPField.Name.digests.contains(where: reply.head.fields.contains),
            let shape = RequestShape(of: plain.arrival.request, in: bytes),
            plain.arrival[shape.path] == Array(passed.request.head.target.utf8), passed.received.target == passed.request.head.target
        else { return }
        let plan = active.routes.plan(for: passed.request.head)
        guard plan.entity == nil, plan.searchVariance == nil else { return }
        let hash = Self.hash(shape, in: bytes, listener)
        if let early = exchange.early, early.isTaken, let known = firstReads[hash],
            known.isFor(shape, in: bytes, at: listener, isLocalClient: exchange.isLocalClient), known.plan == plan,
            known.request.head.fields == passed.request.head.fields, known.request.head.target != passed.request.head.target
        {
            if let template = RelayTemplate(of: early.head, answeredBy: reply.head, for: .store) { known.learn(template) }
            return
        }
        firstReads.keep(
            FirstReadRule(
                passed, plan: plan, before: plain.arrival[shape.before], after: plain.arrival[shape.after], listener: listener,
                isLocalClient: exchange.isLocalClient, reply: reply,
                validity: validity(since: moment, keys: [], credential: passed.identity.credential)),
            as: hash, at: now())
    }

    private static func hash(_ shape: RequestShape, in bytes: Span<UInt8>, _ listener: String) -> Int {
        var hasher = Hasher()
        hasher.combine(listener)
        shape.hash(bytes, into: &hasher)
        return hasher.finalize()
    }
}
