// The hot path: a response just served from memory is kept ready, so that the same request needs no full pipeline
// (docs/architecture.md#parts *memory tier*).
import HTTPTypes
package import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// The prepared reply to a plain request: `bytes`, or `fields` over HTTP/2, then `body` unless it is already part of `bytes`.
package struct ReadyReply: Sendable {
    package let bytes: ByteBuffer
    package let fields: (any Sendable)?
    package let body: ByteBuffer?

    fileprivate init(_ message: HotMessage, isHead: Bool) {
        bytes = isHead ? message.bytes.getSlice(at: message.bytes.readerIndex, length: message.headLength) ?? message.bytes : message.bytes
        fields = message.fields
        body = isHead ? nil : message.body
    }
}

/// Prepares and sends the replies that are served without the read pipeline.
package final class FastPath: Sendable {
    /// Bodies beyond this are never kept ready.
    private static let bodyLimit = Int64.mib(1)

    private let cache: CacheStore
    private let data: DataStore
    private let credentials: Credentials
    private let reachability: ReachabilityTable
    private let statistics: Statistics
    private let overlay: WriteOverlay
    private let lookup: EntryLookup
    private let sight: ClientSight
    private let active: ActiveConfiguration
    private let messages: HotMessageWriter
    private let ring: ExchangeRing
    private let now: @Sendable () -> Timestamp
    private let recent = Mutex<[ObjectIdentifier: NIOLoopBound<RecentMessages>]>([:])

    init(
        cache: CacheStore, data: DataStore, credentials: Credentials, reachability: ReachabilityTable, statistics: Statistics,
        overlay: WriteOverlay, lookup: EntryLookup, sight: ClientSight, active: ActiveConfiguration, finalFields: FinalFields,
        ring: ExchangeRing, now: @escaping @Sendable () -> Timestamp
    ) {
        (self.cache, self.data, self.credentials, self.reachability) = (cache, data, credentials, reachability)
        (self.statistics, self.overlay, self.lookup, self.active, self.now) = (statistics, overlay, lookup, active, now)
        (self.ring, self.sight) = (ring, sight)
        messages = HotMessageWriter(reachability: reachability, finalFields: finalFields)
    }

    /// Returns the prepared reply to a plain request; nil if the request needs the full path. Callable on an event loop.
    ///
    /// - Parameters:
    ///   - bytes: Readable from the request's first byte on.
    ///   - listener: `host:port` of the listener that received the request, and its protocol if that is not HTTP/1.1.
    ///   - address: The client's IP address.
    ///   - last: The last credential of the connection.
    ///   - recent: The messages last sent by the connection's event loop.
    ///   - serialise: Serialises a head; the length is that of its body, nil for a head without one.
    package func hotReply(
        to request: FastPathRequest, in bytes: ByteBuffer, at listener: String, from address: String, last: inout LastCredential,
        recent: RecentMessages,
        serialise: (ResponseHead, Int?) -> SerialisedHead
    ) -> ReadyReply? {
        let (now, epoch) = (now(), reachability.epoch)
        let began = recent.sampling.isDue(at: now) ? ContinuousClock.now : nil
        let credential = last.digest(of: request, in: bytes)
        let arrival = PlainArrival(request, in: bytes, listener: listener, credential: credential)
        let hash = arrival.hash
        if let (message, reader) = recent.message(to: arrival, hash: hash, moment: cache.hotChanges, now: now, epoch: epoch) {
            noteShown(message, of: reader, to: request, in: bytes, from: address)
            return send(message, to: reader, request, at: now, began: began, by: recent)
        }
        let (message, reader): (HotMessage, HotReader)
        switch cache.hot(arrival, hash: hash, now: now, epoch: epoch) {
        case nil: return nil
        case .message(let ready, let reply, let form, let client, let moment):
            (message, reader) = (ready, client)
            recent.keep(ready, of: reply, as: form, for: client, hash: hash, moment: moment)
        case .undated(let hot, let form, let client):
            guard let dated = messages.message(for: hot, as: form, at: now, epoch: epoch, serialise: serialise) else { return nil }
            cache.keep(dated, as: form, of: hot)
            (message, reader) = (dated, client)
        }
        noteShown(message, of: reader, to: request, in: bytes, from: address)
        return send(message, to: reader, request, at: now, began: began, by: recent)
    }

    /// - Parameter began: the time before the lookup; nil for a hit that is not recorded.
    private func send(
        _ message: HotMessage, to reader: HotReader, _ request: FastPathRequest, at now: Timestamp, began: ContinuousClock.Instant?,
        by recent: RecentMessages
    ) -> ReadyReply {
        statistics.countHot(isStale: message.isStale)
        if let began {
            record(
                message, of: reader, isHead: request.isHead, at: now, took: ContinuousClock.now - began,
                represents: recent.sampling.take(at: now))
        } else {
            recent.sampling.skip()
        }
        if !request.isHead { message.countServed() }
        return ReadyReply(message, isHead: request.isHead)
    }

    private func noteShown(
        _ message: HotMessage, of reader: HotReader, to request: FastPathRequest, in bytes: ByteBuffer, from address: String
    ) {
        guard let note = message.note, let shown = reader.shown else { return }
        let received = bytes.readableBytesUInt8Span
        let agent = request.value(of: Self.userAgent, in: received) ?? 0..<0
        sight.note(shown, at: note.url, to: Viewer.Program(address: address, userAgent: received.extracting(agent)))
    }

    private static let userAgent = Array("user-agent".utf8)

    private func record(_ message: HotMessage, of reader: HotReader, isHead: Bool, at now: Timestamp, took: Duration, represents: Int) {
        statistics.measureHot(took, isStale: message.isStale, count: represents)
        guard let note = message.note else { return }
        ring.append(
            .hot(note, reader, isHead: isHead, bytes: isHead ? 0 : message.bodyLength, took: took), at: now, represents: represents)
    }

    /// Returns the table of an event loop. Call it on that loop, once for a connection.
    package func recentMessages(of loop: any EventLoop) -> RecentMessages {
        let bound = recent.withLock { recent in
            if let known = recent[ObjectIdentifier(loop)] { return known }
            let new = NIOLoopBound(RecentMessages(), eventLoop: loop)
            recent[ObjectIdentifier(loop)] = new
            return new
        }
        return bound.value
    }

    /// True if a read must include a write that the copy lacks.
    private func isOverlaid(_ plan: RoutePlan, target: String, over entry: CacheEntry) -> Bool {
        guard let upstream = plan.upstream?.name else { return false }
        guard let collection = plan.entity?.name else { return overlay.files.covers(upstream: upstream, path: FilePath(target)) }
        let alias = { self.data.localIDs.alias(upstream: upstream, collection: $0, id: $1) }
        return overlay.concerns(entry.response.includesWritesUntil, upstream: upstream, collection: collection.canonical(alias))
    }

    /// Keeps the reply to a plain request ready if it is a stored response with its body in memory, fresh, or stale for a reason that holds
    /// for the next request too.
    ///
    /// `hotMoment` is read first, then all conditions are checked again: any change after that moment discards the prepared reply.
    /// - Parameter gateway: The gateway of the request. A reply that is translated for its clients is never kept ready.
    package func warm(_ plain: PlainCopy, for received: RequestHead, through gateway: GatewayAddress? = nil) async {
        let moment = cache.hotMoment
        let plan = active.routes.plan(for: received)
        let rule = plan.upstream?.identity ?? .auto
        let identity = credentials.identity(of: received, rule: rule)
        // No two signatures are equal, so such a request is not repeated.
        guard !plan.isWrite, plan.route?.logout != true, plan.route?.kind != .oci, identity.signature.isEmpty, !identity.isFormer,
            !received.fields.contains(.origin)
        else { return }
        var request = received.unconditional
        request.method = .get
        request.fields = identity.withoutSecrets(request.fields)
        let own = lookup.key(of: request, plan: plan, in: .own(identity.partition))
        let shared = lookup.key(of: request, plan: plan, in: .shared)
        guard let stored = try? await cache.lookup([own, shared]) else { return }
        let found = lookup.ownFirst(lookup.readable(stored, by: identity), identity: identity, plan: plan)
        let rules = ReuseContext(
            policy: plan.policy, strategy: plan.strategy, offlineWindow: active.offlineWindow(of: plan, for: found.first?.response))
        let basis = ReuseBasis(candidates: found, request: request, rules: rules, upstream: plan.upstream?.name)
        guard let entry = messages.decision(on: basis, at: now())?.entry, !isOverlaid(plan, target: request.target, over: entry),
            entry.response.head.isSentWhole,
            !Vary.isBySecret(found.map(\.response)),
            entry.response.bodyLength <= Self.bodyLimit, case .bytes(let body)? = try? await cache.body(of: entry),
            cache.bodyInMemory(of: entry) != nil,
            gateway == nil || !GatewayAddress.mayConcern(entry.response.head.fields),
            !GatewayReplies.changes(entry.response.head, body.readableBytesUInt8Span, of: plan.upstream, for: gateway)
        else { return }
        // `Origin` always selects: a reply without permission for a page must not be served to it (docs/caching.md#pages-of-other-origins).
        let names = found.flatMap { $0.response.validity.varyNames ?? [] } + [.origin] + (rule.fieldName.map { [$0] } ?? [])
        let selecting = Set(names).sorted { $0.canonicalName < $1.canonicalName }
        let shown =
            plan.showsState
            ? ShownState(entry.response, content: plan.showsItem ? Array(body.readableBytesView) : nil) : nil
        let hot = FastPathReply(
            entry, body: body, basis: basis, for: plain.arrival, selecting: selecting, served: statistics.traffic.hot(plan.upstream?.name),
            category: plan.category?.name, hidesTags: plan.upstream?.tags == .hide)
        let reader = HotReader(
            plain.arrival, principal: identity.principal, shown: shown.map { Showing($0, to: identity.partition) },
            request: request.fields)
        cache.keep(hot, for: reader, sibling: entry.key == own ? shared : own, credential: identity.credential, since: moment)
    }
}

extension ResponseHead {
    /// True if every GET receives the body of this response, with a `Content-Length`.
    fileprivate var isSentWhole: Bool { status >= 200 && status != 204 && status != 206 && status != 304 }
}

// MARK: - Serialised replies

/// A head in the form that a connection sends.
package struct SerialisedHead: Sendable {
    /// The head of an HTTP/1.1 message; empty over HTTP/2.
    package let bytes: ByteBuffer
    /// The fields of an HTTP/2 head, of the type that the connection uses; nil over HTTP/1.1.
    package let fields: (any Sendable)?

    package init(bytes: ByteBuffer) { (self.bytes, fields) = (bytes, nil) }

    package init(fields: any Sendable) { (bytes, self.fields) = (ByteBuffer(), fields) }
}

/// Serialises the message of a kept reply, equal to the response of the full path at that moment.
struct HotMessageWriter: Sendable {
    let reachability: ReachabilityTable
    let finalFields: FinalFields

    /// A response that may be sent without the read pipeline.
    struct Decision {
        let entry: CacheEntry
        let freshness: Freshness
        let status: CacheStatus
        /// The reason why nothing is sent to the upstream, if the response is sent for that reason.
        var absence: Reachability.Reason?
        /// True if the full path would refresh the response behind this reply.
        var refreshesBehind = false
        var isStale: Bool { !freshness.isFresh }
    }

    /// Returns the message for one form of the reply; nil if the request needs the full path now.
    func message(
        for hot: FastPathReply, as form: FastPathReply.Form, at now: Timestamp, epoch: UInt64,
        serialise: (ResponseHead, Int?) -> SerialisedHead
    ) -> HotMessage? {
        guard let decision = decision(on: hot.basis, at: now), decision.entry.id == hot.entry.id,
            !decision.refreshesBehind || !hot.handOver(at: now), let (stored, body) = content(of: hot, as: form)
        else { return nil }
        let head = hot.entry.dated(stored, by: decision.freshness)
        var trace = Trace(method: "GET", url: "", startedAt: now)
        trace.cacheStatus = decision.status
        if let absence = decision.absence {
            let last = hot.basis.upstream.flatMap { reachability.machine(of: $0)?.lastError }
            trace.note(failure: .notTried(absence, last), origin: hot.basis.request.origin)
        }
        var reply = Reply(head: head, body: .none(length: nil), trace: trace)
        finalFields.add(to: &reply, trace: trace, hidesTags: hot.hidesTags)
        let serialised = serialise(reply.head, body?.readableBytes)
        return HotMessage(
            head: serialised.bytes, fields: serialised.fields, body: body, isStale: decision.isStale, validFrom: now,
            validUntil: now + decision.freshness.unchanging(at: now), epoch: epoch,
            note: HotNote(
                hot, head: reply.head, cacheStatus: decision.status, isStale: decision.isStale, error: trace.proxyStatus?.error.rawValue))
    }

    /// Returns the decision that the read pipeline would make; nil if the pipeline would send a request, or may try the upstream.
    func decision(on basis: ReuseBasis, at now: Timestamp) -> Decision? {
        let permission = reachability.expectedPermission(for: basis.upstream, now: now)
        var rules = basis.rules
        // While a portal is suspected, the full path decides.
        guard rules.policy != .offlineFirst || reachability.isTrusted(basis.upstream) || permission.reason != nil else { return nil }
        rules.isReachable = permission.reason == nil
        let reuse = Reuse.decide(candidates: basis.candidates.map(\.response), request: basis.request, context: rules, now: now)
        switch reuse {
        case .fresh(let index, let freshness):
            return Decision(entry: basis.candidates[index], freshness: freshness, status: .hit(freshness))
        case .stale(let index, let freshness, let reason):
            let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: reason.detail)
            var decision = Decision(entry: basis.candidates[index], freshness: freshness, status: status)
            switch reason {
            case .offline: decision.absence = permission.reason
            case .staleWhileRevalidate(let refreshes):
                decision.absence = permission.reason
                decision.refreshesBehind = refreshes && rules.isReachable
            case .cacheOnly: break
            case .variant, .maxStale, .budget: return nil
            }
            return decision
        case .validate, .complete, .none, .gatewayTimeout: return nil
        }
    }

    /// Returns head and body of one form; nil if the full path would send another.
    private func content(of hot: FastPathReply, as form: FastPathReply.Form) -> (ResponseHead, ByteBuffer?)? {
        let stored = hot.entry.response.head
        var request = hot.basis.request
        switch form {
        case .whole: return (stored, hot.body)
        case .notModified:
            request.fields[.ifNoneMatch] = stored.fields[.eTag]
            request.fields[.ifModifiedSince] = stored.fields[.lastModified]
            guard case .notModified(let head) = Preconditions.evaluate(request: request, stored: stored) else { return nil }
            return (head, nil)
        case .part(let range):
            request.fields[.range] = String(decoding: range, as: UTF8.self)
            let length = Int64(hot.body.readableBytes)
            guard case .part(let head, let part)? = RangeReply.decide(request: request, stored: stored, bodyLength: length, boundary: ""),
                let slice = hot.body.getSlice(
                    at: hot.body.readerIndex + Int(part.lowerBound), length: Int(part.upperBound - part.lowerBound))
            else { return nil }
            return (head, slice)
        }
    }
}

extension Reachability.Permission {
    /// The reason why nothing may be sent; nil if a request may be sent.
    fileprivate var reason: Reachability.Reason? {
        if case .no(let reason) = self { reason } else { nil }
    }
}

extension CacheEntry {
    /// Returns `head`, made from the stored one, with the fields that depend on the moment and on the copy.
    func dated(_ head: ResponseHead, by freshness: Freshness) -> ResponseHead {
        var head = head
        head.fields[.age] = String(max(0, freshness.age.seconds))
        if response.isDirty { head.fields[.rockpoolDirty] = "1" }
        return head
    }
}

extension Freshness {
    /// The time for which the serialised head stays correct: until the next change of `Age`, `ttl` or `Date`, or the end of freshness.
    fileprivate func unchanging(at now: Timestamp) -> TimeSpan {
        let untilAge = 1000 - age.milliseconds % 1000
        let untilLeft = remaining.milliseconds - remaining.seconds.multipliedClamped(by: 1000) + 1
        let untilDate = 1000 - (now.milliseconds - now.seconds.multipliedClamped(by: 1000))
        let until = TimeSpan.milliseconds(min(untilAge, untilLeft, untilDate))
        return isFresh ? min(remaining, until) : until
    }
}

// MARK: - The messages of one event loop

/// A small table of one event loop: a message that the loop has found under the memory tier's lock is sent again without it while the tier is
/// unchanged (docs/architecture.md#many-cores).
package final class RecentMessages {
    private struct Place {
        let hash: Int
        let reply: FastPathReply
        let form: FastPathReply.Form
        let reader: HotReader
        let message: HotMessage
        let moment: UInt64
    }

    /// Places of one loop. With `sizeLimit`, a loop keeps at most 2 MiB of bodies from being freed.
    private static let count = 128
    /// Bytes of the largest message and of the largest body that are kept.
    private static let sizeLimit = HotMessage.joinLimit

    /// Selects the hits that are recorded.
    var sampling = HotSampling()
    private var places = [Place?](repeating: nil, count: count)

    /// Returns the message for a request.
    /// - Parameter moment: `CacheStore.hotChanges`.
    func message(
        to arrival: PlainArrival, hash: Int, moment: UInt64, now: Timestamp, epoch: UInt64
    ) -> (message: HotMessage, reader: HotReader)? {
        guard let place = places[hash & (Self.count - 1)], place.hash == hash, place.moment == moment,
            place.message.isValid(at: now, epoch: epoch), place.reader.isFor(arrival), place.reply.answers(arrival),
            place.reply.form(for: arrival) == place.form
        else { return nil }
        return (place.message, place.reader)
    }

    func keep(_ message: HotMessage, of reply: FastPathReply, as form: FastPathReply.Form, for reader: HotReader, hash: Int, moment: UInt64)
    {
        guard message.bytes.readableBytes <= 2 * Self.sizeLimit, message.body?.readableBytes ?? 0 <= Self.sizeLimit else { return }
        places[hash & (Self.count - 1)] = Place(hash: hash, reply: reply, form: form, reader: reader, message: message, moment: moment)
    }
}
