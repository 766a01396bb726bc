// The challenges that protection spaces gave, for requests to other places in them while the upstream is away (docs/caching.md#challenges).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// Keeps one challenge for each space, as an entry of the partition of requests without credentials.
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
