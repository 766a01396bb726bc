// Serves stored entries: conditions, ranges, stale responses and their status fields (RFC 9110 §13, §14; RFC 9111 §4.2.4; RFC 5861).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// Makes replies from stored entries: fresh, stale, or in place of a failed fetch.
struct StoredReplies: Sendable {
    let cache: CacheStore
    let lookup: EntryLookup
    let portal: PortalCheck
    let upstreams: UpstreamClient
    let logger: Logger
    let now: @Sendable () -> Timestamp

    /// Returns the reply from a stored entry; nil if its body is gone.
    /// - Parameter standsIn: True if the request may select another variant. Then the body is decoded for a client that does not accept its
    ///   coding.
    func serve(
        _ entry: CacheEntry, freshness: Freshness, for context: inout RequestContext, status: CacheStatus? = nil, standsIn: Bool = false
    ) async -> Reply? {
        let isDecoded = standsIn && !entry.response.isHeadOnly && !ContentCoding.isAccepted(entry.response.head.fields, by: context.request)
        let content = isDecoded ? await decodedContent(of: entry, for: context) : await content(of: entry, for: context)
        guard case (let head, let body)? = content else { return nil }
        cache.use(entry)
        context.trace.includes = entry.response.includesWritesUntil
        context.trace.cacheStatus = status ?? .hit(freshness)
        var reply = Reply(head: entry.dated(head, by: freshness), body: body, trace: context.trace)
        // Every anonymous copy is fetched anew where that is possible.
        if entry.response.isInvalidated, entry.key.partition != .anonymous, let entity = context.plan.entity, entity.isItem,
            entity.resource != nil
        {
            reply.head.fields[.rockpoolSync] = EntityState.pendingPull.rawValue
        }
        return reply
    }

    /// Returns the requested part of the stored response; nil if the body is gone.
    private func content(of entry: CacheEntry, for context: RequestContext) async -> (ResponseHead, ReplyBody)? {
        // The head of a part is that of the whole for HEAD.
        let stored = context.request.method == .head ? entry.response.asWhole ?? entry.response : entry.response
        let (head, length) = (stored.head, stored.bodyLength)
        if case .notModified(let notModified) = Preconditions.evaluate(request: context.request, stored: head) {
            return (notModified, .none(length: nil))
        }
        if stored.isHeadOnly { return (head, .none(length: head.fields[.contentLength].flatMap { Int64($0) })) }
        if context.request.method == .head { return (head, .none(length: length)) }
        guard let body = await body(of: entry) else { return nil }
        switch RangeReply.decide(request: context.request, stored: head, bodyLength: length, boundary: Multipart.boundary()) {
        case nil: return nil
        case .whole: return (head, ReplyBody(body, in: cache))
        case .part(let head, let range): return body.slice(range).map { (head, ReplyBody($0, in: cache)) }
        case .parts(let head, let parts, let closing):
            let multipart = Multipart(parts, closing: closing, of: body, in: cache)
            return (head, .stream(multipart, length: multipart.length))
        case .unsatisfiable(let head): return (head, .bytes(ByteBuffer()))
        }
    }

    /// Returns the whole body without its content coding. Its length is unknown, so ranges are not supported.
    private func decodedContent(of entry: CacheEntry, for context: RequestContext) async -> (ResponseHead, ReplyBody)? {
        guard ContentCoding.canBeDecoded(entry.response.head), let decoder = ContentDecoders.decoder(of: entry.response.head.fields) else {
            return await content(of: entry, for: context)
        }
        let head = ContentCoding.decoded(entry.response.head)
        if case .notModified(let notModified) = Preconditions.evaluate(request: context.request, stored: head) {
            return (notModified, .none(length: nil))
        }
        guard let body = await body(of: entry) else { return nil }
        let decoded = DecodedBody(body, by: decoder, in: cache)
        guard await decoded.begin() else {
            logger.warning(
                "a stored body is not of the coding it is said to be", metadata: ["url": "\(SecretParameters.redacted(url: entry.key.url))"]
            )
            return nil
        }
        return (head, context.request.method == .head ? .none(length: nil) : .stream(decoded, length: nil))
    }

    private func body(of entry: CacheEntry) async -> CachedBody? {
        do {
            return try await cache.body(of: entry)
        } catch {
            logger.failed("cache body unreadable", error: error)
            return nil
        }
    }

    /// Returns a stale entry as the decision allows; nil if its body is gone.
    func serveStale(
        _ entry: CacheEntry, freshness: Freshness, reason: Reuse.StaleReason, for context: inout RequestContext
    ) async -> Reply? {
        let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: reason.detail)
        guard let reply = await serve(entry, freshness: freshness, for: &context, status: status, standsIn: reason == .variant) else {
            return nil
        }
        switch reason {
        case .offline, .variant: context.noteFailure(.notTried(absence(for: context), upstreams.lastFailure(context.plan.upstream)))
        case .staleWhileRevalidate where !context.isReachable:
            context.noteFailure(.notTried(absence(for: context), upstreams.lastFailure(context.plan.upstream)))
        default: break
        }
        return reply
    }

    /// The reason why no request is sent to the upstream.
    private func absence(for context: RequestContext) -> Reachability.Reason {
        if case .no(let reason) = context.permission { return reason }
        return portal.isDoubted(plan: context.plan) ? .captive : .offline
    }

    // MARK: - Stale responses after a failure

    /// Returns a stored response after a failure without a response, if that is allowed (RFC 5861 §4, docs/caching.md#stale-responses).
    func standIn(for failure: TransferFailure, to context: inout RequestContext, forwarding: Forwarding) async -> Reply? {
        let kind: UpstreamFailure = failure.kind == .tls || failure.kind == .denied ? .untrusted : .unreachable
        guard let reply = await standIn(kind, detail: "offline", to: &context, forwarding: forwarding) else { return nil }
        context.noteFailure(failure)
        return reply
    }

    /// Returns the challenge of a request's protection space, in place of an upstream that cannot be reached; nil without one.
    func challenge(
        of spaces: ProtectionSpaces, after failure: TransferFailure, to context: inout RequestContext
    ) async -> Reply? {
        guard failure.kind != .tls, failure.kind != .denied, failure.kind != .cancelled, failure.kind != .protocolError,
            let entry = await spaces.challenge(for: context)
        else { return nil }
        let freshness = Freshness.of(entry.response, now: now())
        let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: "offline")
        guard let reply = await serve(entry, freshness: freshness, for: &context, status: status) else { return nil }
        context.trace.verdict = .stale
        context.noteFailure(failure)
        return reply
    }

    /// Returns a stored response in place of an error of the upstream, of a demand to pause (429), or of a suspected portal's page.
    func standIn(for fetched: FetchedResponse, to context: inout RequestContext, forwarding: Forwarding) async -> Reply? {
        let (failure, detail): (UpstreamFailure, String)
        if fetched.isSuspect {
            (failure, detail) = (.unreachable, "captive")
        } else if fetched.head.status >= 500 {
            (failure, detail) = (.status(fetched.head.status), "stale-if-error")
        } else if fetched.head.status == 429 {
            (failure, detail) = (.status(429), Reuse.StaleReason.budget.detail)
        } else {
            return nil
        }
        guard !fetched.isSuspect || context.plan.policy == .offlineFirst, case .alone(let pipe) = fetched.body,
            let reply = await standIn(failure, detail: detail, to: &context, forwarding: forwarding)
        else { return nil }
        pipe.abandon()
        if failure != .status(429) {
            context.trace.proxyStatus = ProxyStatus(error: .destinationUnavailable, nextHop: context.request.origin.hostAndPort)
        }
        return reply
    }

    private func standIn(
        _ failure: UpstreamFailure, detail: String, to context: inout RequestContext, forwarding: Forwarding
    ) async -> Reply? {
        guard let entry = forwarding.entry ?? copy(for: context, in: failure, forwarding: forwarding),
            StaleOnError.permits(entry.response, request: context.request, failure: failure, context: forwarding.rules, now: now())
        else { return nil }
        let freshness = Freshness.of(entry.response, now: now())
        let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: detail)
        guard let reply = await serve(entry, freshness: freshness, for: &context, status: status, standsIn: true) else { return nil }
        context.trace.verdict = .stale
        return reply
    }

    /// The stored response that would be served if the upstream were unreachable; nil if there is none.
    private func copy(for context: RequestContext, in failure: UpstreamFailure, forwarding: Forwarding) -> CacheEntry? {
        guard failure != .untrusted else { return nil }
        var rules = forwarding.rules
        rules.isReachable = false
        switch lookup.reuse(of: forwarding.found, for: context.request, rules: rules, now: now()) {
        case .fresh(let index, _), .stale(let index, _, _): return forwarding.found[index]
        case .validate, .complete, .none, .gatewayTimeout: return nil
        }
    }
}
