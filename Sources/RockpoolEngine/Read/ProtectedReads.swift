// What upstreams have said about access, kept for the time when they are away: the challenges of their protection spaces, and which
// presigned URLs they have accepted.
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// Keeps one challenge for each space, as an entry of the partition of requests without credentials: for requests to other places in the
/// space while the upstream is away (docs/caching.md#challenges).
struct ProtectionSpaces: Sendable {
    /// A kept challenge stays for this long before a newer one takes its place.
    private static let renewedAfter = TimeSpan.minutes(10)

    let cache: CacheStore
    /// The configuration in force.
    let active: ActiveConfiguration
    let logger: Logger
    let now: @Sendable () -> Timestamp

    /// Keeps an answer, if it is a challenge.
    func keep(_ answer: ResponseHead, sentAt: Moment, for context: RequestContext) {
        let (request, plan) = (context.request, context.plan)
        guard answer.status == 401, plan.upstream != nil, plan.store != .never,
            KeptChallenge.isOne(answer, to: request, policy: plan.policy, identity: context.identity.partition),
            let space = KeptChallenge.spaces(of: request).first
        else { return }
        let key = Self.key(of: space, for: request)
        Task {
            let moment = now()
            let category = plan.category ?? .important
            let response = StoredResponse(
                head: KeptChallenge.head(of: answer), requestTime: sentAt.at, asked: sentAt.tick, responseTime: moment,
                category: category.name)
            do {
                let known = try await cache.lookup([key]).first
                guard known.map({ moment - $0.response.responseTime > Self.renewedAfter }) ?? true else { return }
                _ = try await cache.replace(key, by: response, body: ByteBuffer(), category: category, mayLinger: true)
            } catch {
                logger.failed("a challenge is not kept", error: error)
            }
        }
    }

    /// The challenge of the narrowest space of a request without credentials whose challenge is known; nil if there is none.
    func challenge(for context: RequestContext) async -> CacheEntry? {
        let (request, plan) = (context.request, context.plan)
        guard plan.upstream != nil, KeptChallenge.mayBeGiven(to: request, policy: plan.policy, identity: context.identity.partition) else {
            return nil
        }
        let keys = KeptChallenge.spaces(of: request).map { Self.key(of: $0, for: request) }
        do {
            let found = try await cache.lookup(keys).filter {
                now() - $0.response.responseTime <= active.offlineWindow(of: plan, for: $0.response)
            }
            return keys.lazy.compactMap { key in found.first { $0.key == key } }.first
        } catch {
            logger.failed("challenges cannot be read", error: error)
            return nil
        }
    }

    /// A challenge to a write says nothing of other methods.
    private static func key(of space: String, for request: RequestHead) -> CacheKey {
        let subject = "challenge" + (request.method.isSafe ? "" : " " + request.method.rawValue)
        return CacheKey(
            method: "GET", origin: request.origin, target: space, identity: StoragePartition.anonymous.name,
            body: CacheStore.digest(of: subject.utf8))
    }
}

// MARK: - Presigned URLs

/// Keeps the accepted signatures, as entries of the partition of requests without credentials. A copy is stored without its signature, so
/// while the upstream cannot judge a signature only one that it has accepted opens the copy (docs/caching.md#presigned-urls).
struct PresignedReads: Sendable {
    let cache: CacheStore
    let logger: Logger
    let now: @Sendable () -> Timestamp

    /// Keeps the signature of a request that the upstream has answered with the object.
    func keep(_ answer: ResponseHead, sentAt: Moment, for context: RequestContext) {
        guard let key = Self.key(of: context.request.method, for: context), context.plan.upstream != nil, context.plan.store != .never,
            [200, 206, 304].contains(answer.status)
        else { return }
        let category = context.plan.category ?? .important
        let response = StoredResponse(
            head: ResponseHead(status: 204), requestTime: sentAt.at, asked: sentAt.tick, responseTime: now(), category: category.name)
        Task {
            do {
                guard try await cache.lookup([key]).isEmpty else { return }
                _ = try await cache.replace(key, by: response, body: ByteBuffer(), category: category, mayLinger: true)
            } catch {
                logger.failed("an accepted signature is not kept", error: error)
            }
        }
    }

    /// Returns the stored entries as the request may use them, and the rules for that.
    func judged(_ found: [CacheEntry], by rules: ReuseContext, for context: RequestContext) async -> ([CacheEntry], ReuseContext) {
        guard let presigned = context.presigned, !found.isEmpty else { return (found, rules) }
        let isAccepted = await isAccepted(context)
        if isAccepted, presigned.expiresAt.map({ $0 > now() }) ?? true { return (found, rules) }
        // Its upstream may refuse it.
        let doubted = found.map { entry in
            var doubted = entry
            doubted.response.isInvalidated = true
            return doubted
        }
        if isAccepted { return (doubted, rules) }
        var rules = rules
        // Nothing stale without its upstream, whatever is declared.
        rules.policy = .standard
        return rules.strategy == .cacheOnly ? ([], rules) : (doubted, rules)
    }

    private func isAccepted(_ context: RequestContext) async -> Bool {
        // What may be read may be asked about.
        let methods: [HTTPRequest.Method] = context.request.method == .head ? [.get, .head] : [context.request.method]
        do { return try await !cache.lookup(methods.compactMap { Self.key(of: $0, for: context) }).isEmpty } catch {
            logger.failed("accepted signatures cannot be read", error: error)
            return false
        }
    }

    /// Nil for a request that is not presigned.
    private static func key(of method: HTTPRequest.Method, for context: RequestContext) -> CacheKey? {
        guard let presigned = context.presigned else { return nil }
        let subject = "presigned\n\(method.rawValue)\n\(presigned.signature)"
        return CacheKey(
            method: "GET", origin: context.request.origin, target: presigned.target, identity: StoragePartition.anonymous.name,
            body: CacheStore.digest(of: subject.utf8))
    }
}

extension RequestContext {
    /// The refusal of a write whose URL is signed for less time than its upstream is likely to stay away; nil for one that may wait, also because
    /// its client has named a time.
    func shortWait(awaySince start: Timestamp, now: Timestamp) -> Problem? {
        guard wishes.expiresAt == nil, let end = presigned?.expiresAt, !SignedWait.isLongEnough(until: end, awaySince: start, now: now)
        else { return nil }
        let detail =
            "\(request.origin.hostAndPort) cannot be reached, and this URL is signed until \(RFC3339.format(end)) only. Ask for a new one when "
            + "it is back, or send Rockpool-Expires to let the write wait until then"
        return Problem(.notQueueable, detail: detail, upstream: plan.upstream?.name, retryAfter: 5)
    }
}
