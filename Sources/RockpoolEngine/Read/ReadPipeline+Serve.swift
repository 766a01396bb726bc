// Serves stored entries: conditions, ranges, stale responses and their status fields (RFC 9110 §13, §14; RFC 9111 §4.2.4; RFC 5861).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Returns the reply from a stored entry; nil if its body is gone.
    /// - Parameter standsIn: True if the request may select another variant. Then the body is decoded for a client that does not accept its
    ///   coding.
    func serve(
        _ entry: CacheEntry, _ freshness: Freshness, _ context: inout RequestContext, status: CacheStatus? = nil, standsIn: Bool = false
    ) async -> Reply? {
        let isDecoded = standsIn && !ContentCoding.isAccepted(entry.response.head.fields, by: context.request)
        let content = isDecoded ? await decodedContent(of: entry, for: context) : await content(of: entry, for: context)
        guard case (var head, let body)? = content else { return nil }
        cache.use(entry)
        context.trace.fetchedAt = entry.response.includesWritesUntil
        context.trace.cacheStatus = status ?? CacheStatus(hit: true, ttl: freshness.remaining.seconds)
        head.fields[.age] = String(max(0, freshness.age.seconds))
        if entry.response.isDirty { head.fields[.rockpoolDirty] = "1" }
        return Reply(head: head, body: body, trace: context.trace)
    }

    /// Returns the requested part of the stored response; nil if the body is gone.
    private func content(of entry: CacheEntry, for context: RequestContext) async -> (ResponseHead, ReplyBody)? {
        let (head, length) = (entry.response.head, entry.response.bodyLength)
        if case .notModified(let notModified) = Preconditions.evaluate(request: context.request, stored: head) {
            return (notModified, .none(length: nil))
        }
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
        guard ContentCoding.canBeDecoded(entry.response.head) else { return await content(of: entry, for: context) }
        let head = ContentCoding.decoded(entry.response.head)
        if case .notModified(let notModified) = Preconditions.evaluate(request: context.request, stored: head) {
            return (notModified, .none(length: nil))
        }
        guard let body = await body(of: entry) else { return nil }
        let decoded = DecodedBody(body, in: cache)
        guard await decoded.begin() else {
            logger.warning("a stored body is not of the coding it is said to be", metadata: ["url": "\(entry.key.url)"])
            return nil
        }
        return (head, context.request.method == .head ? .none(length: nil) : .stream(decoded, length: nil))
    }

    private func body(of entry: CacheEntry) async -> CachedBody? {
        do {
            return try await cache.body(of: entry)
        } catch {
            logger.failed("cache body unreadable", error)
            return nil
        }
    }

    /// Returns a stale entry as the decision allows; nil if its body is gone.
    func serveStale(
        _ entry: CacheEntry, _ freshness: Freshness, _ reason: Reuse.StaleReason, _ context: inout RequestContext
    ) async -> Reply? {
        let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: reason.detail)
        guard let reply = await serve(entry, freshness, &context, status: status, standsIn: reason == .variant) else { return nil }
        switch reason {
        case .offline, .variant: noteFailure(.notTried(absence(context), upstreams.lastFailure(context.plan.upstream)), &context)
        case .staleWhileRevalidate where !context.isReachable:
            noteFailure(.notTried(absence(context), upstreams.lastFailure(context.plan.upstream)), &context)
        case .staleWhileRevalidate(refreshBehind: true): refresh(entry, context)
        default: break
        }
        return reply
    }

    /// The reason why no request is sent to the upstream.
    private func absence(_ context: RequestContext) -> Reachability.Reason {
        if case .no(let reason) = context.permission { return reason }
        return mayBeAnothers(context) ? .captive : .offline
    }

    /// Revalidates the entry in the background, so that the next read is fresh (RFC 5861 §3). At most one refresh per key runs at a time.
    private func refresh(_ entry: CacheEntry, _ context: RequestContext) {
        // On a slow connection a large body would delay requests that clients wait for (docs/caching.md#bandwidth).
        if entry.response.bodyLength >= Bandwidth.leastBytes.bytes, upstreams.isNarrow(context.plan.upstream) { return }
        fetchBehind(context, varyingBy: entry.response.validity.varyNames ?? [])
    }

    /// Sends the same read as Rockpool's own request in the background. At most one per key runs at a time.
    func fetchBehind(_ context: RequestContext, varyingBy names: [HTTPField.Name] = []) {
        let key = context.fillKey(varyingBy: names)
        guard fills.beginRefresh(key) else { return }
        let behind = context.behind(at: now())
        Task {
            defer { fills.endRefresh(key) }
            var behind = behind
            let reply = await readServerState(&behind)
            if case .stream(let source, _) = reply.body { try? await source.drain() }
        }
    }

    // MARK: stale responses after a failure

    /// Returns a stored response after a failure without a response, if that is allowed (RFC 5861 §4, docs/caching.md#stale-responses).
    func standIn(for failure: TransferFailure, _ question: Forwarding, _ context: inout RequestContext) async -> Reply? {
        let kind: UpstreamFailure = failure.kind == .tls || failure.kind == .denied ? .untrusted : .unreachable
        guard let reply = await standIn(kind, "offline", question, &context) else { return nil }
        noteFailure(failure, &context)
        return reply
    }

    /// Returns a stored response in place of an error of the upstream, or of a suspected portal's page.
    func standIn(for answer: FetchedResponse, _ question: Forwarding, _ context: inout RequestContext) async -> Reply? {
        let (failure, detail): (UpstreamFailure, String)
        if answer.isSuspect {
            (failure, detail) = (.unreachable, "captive")
        } else if answer.head.status >= 500 {
            (failure, detail) = (.status(answer.head.status), "stale-if-error")
        } else {
            return nil
        }
        guard !answer.isSuspect || context.plan.policy == .offlineFirst, case .alone(let pipe) = answer.body,
            let reply = await standIn(failure, detail, question, &context)
        else { return nil }
        pipe.abandon()
        context.trace.proxyStatus = ProxyStatus(error: .destinationUnavailable, nextHop: context.request.origin.hostAndPort)
        return reply
    }

    private func standIn(
        _ failure: UpstreamFailure, _ detail: String, _ question: Forwarding, _ context: inout RequestContext
    ) async -> Reply? {
        guard let entry = question.entry ?? copy(question, context, in: failure),
            case let freshness = question.freshness ?? .of(entry.response, now: now()),
            StaleOnError.permits(entry.response, request: context.request, failure: failure, context: question.rules, now: now())
        else { return nil }
        let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: detail)
        guard let reply = await serve(entry, freshness, &context, status: status, standsIn: true) else { return nil }
        context.trace.verdict = .stale
        return reply
    }

    /// The stored response that would be served if the upstream were unreachable; nil if there is none.
    private func copy(_ question: Forwarding, _ context: RequestContext, in failure: UpstreamFailure) -> CacheEntry? {
        guard failure != .untrusted else { return nil }
        var rules = question.rules
        rules.isReachable = false
        switch reuse(question.found.map(\.response), for: context.request, rules, now: now()) {
        case .fresh(let index, _), .stale(let index, _, _): return question.found[index]
        case .validate, .complete, .none, .gatewayTimeout: return nil
        }
    }
}
