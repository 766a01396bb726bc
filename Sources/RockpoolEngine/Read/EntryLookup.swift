// The step `lookup`: the keys of a request, the stored entries under them, and the decision about their reuse (RFC 9111 §4).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// Finds stored entries and decides about their reuse.
struct EntryLookup: Sendable {
    let cache: CacheStore
    /// Holds the key under which credentials in selecting fields are hidden.
    let data: DataStore
    let logger: Logger
    let now: @Sendable () -> Timestamp

    // MARK: - Keys

    /// Returns the key of a request without a body in one partition.
    func key(of request: RequestHead, plan: RoutePlan, in partition: StoragePartition) -> CacheKey {
        var request = request
        if let variance = searchVariance(for: request, plan: plan) { request.target = variance.normalized(target: request.target) }
        return CacheKey(request, identity: partition.name)
    }

    /// The equivalence of the path's queries: from the route, otherwise from the origin's last `No-Vary-Search`.
    func searchVariance(for request: RequestHead, plan: RoutePlan) -> SearchVariance? {
        if let declared = plan.searchVariance { return declared }
        guard cache.hasSearchRules else { return nil }
        return cache.searchRule(ofPath: request.urlWithoutQuery).flatMap { SearchVariance(fieldValue: $0) }
    }

    // MARK: - Entries

    /// Returns every stored variant that the request may read: those of its own partition first, then the shared ones.
    func entries(for context: RequestContext) async -> [CacheEntry] {
        guard context.plan.strategy != .networkOnly else { return [] }
        let keys = StoragePartition.readable(by: context.identity.partition).map(context.key)
        let found = readable(await entries(under: keys), by: context.identity)
        guard found.isEmpty, context.request.method == .head, context.plan.policy == .offlineFirst else { return found }
        return readable(await entries(under: keys.map(\.ofHead)), by: context.identity)
    }

    /// Returns the entries without those of another identity that only their freshness permits sharing.
    func readable(_ found: [CacheEntry], by identity: Identity) -> [CacheEntry] {
        guard found.contains(where: { $0.response.owner != nil }) else { return found }
        let (names, now) = ([identity.partition, identity.principal, identity.credential], now())
        return found.filter { $0.response.isReadable(by: names, now: now) }
    }

    /// True if the shared copy of a request is another identity's, so that a response to `owner` is stored beside it and not in its place.
    func isOfAnother(_ key: CacheKey, than owner: String) async -> Bool {
        await entries(under: [key]).contains { $0.response.owner.map { $0 != owner } ?? false }
    }

    /// Returns the entries under the keys; none if the store fails, which is logged.
    func entries(under keys: [CacheKey]) async -> [CacheEntry] {
        do { return try await cache.lookup(keys) } catch {
            logger.failed("cache lookup failed", error: error)
            return []
        }
    }

    /// Under `offline-first`, filters `found` for a request with a credential. Shared copies that are not marked shareable answered requests
    /// without one. Beside an own copy that was selected by the same fields they are dropped. For a request with a key or token they are
    /// dropped beside any whole own copy, and else marked for revalidation; while the upstream is unreachable they are served.
    ///
    /// RFC 9111 allows a copy to answer every request that matches its `Vary`, but an API that responds by credential may fail to declare
    /// it there. Cookies cause no revalidation: browsers send them with every image.
    func ownFirst(_ found: [CacheEntry], identity: Identity, plan: RoutePlan) -> [CacheEntry] {
        // No two signatures are equal, so none is known: while the upstream can be reached it judges each.
        guard identity.signature.isEmpty else { return found.map { $0.key.partition == .shared ? $0 : doubted($0) } }
        guard plan.policy == .offlineFirst, identity.partition?.isEmpty == false else { return found }
        let isNobodys = { (entry: CacheEntry) in
            entry.key.partition == .shared && !Storability.isShareable(entry.response.directives)
        }
        guard found.contains(where: isNobodys) else { return found }
        let own = found.filter { $0.key.partition != .shared && $0.response.part == nil }
        guard identity.secrets.contains(where: { $0.name != .cookie }) else {
            let selecting = Set(own.map { SecretFields.removed(from: $0.response.requestFields) })
            return found.filter { !isNobodys($0) || !selecting.contains(SecretFields.removed(from: $0.response.requestFields)) }
        }
        if !own.isEmpty { return found.filter { !isNobodys($0) } }
        return found.map { isNobodys($0) ? doubted($0) : $0 }
    }

    private func doubted(_ entry: CacheEntry) -> CacheEntry {
        var doubted = entry
        doubted.response.isInvalidated = true
        return doubted
    }

    // MARK: - Reuse

    /// Decides about the reuse of stored entries for this request (RFC 9111 §4). While the upstream is unreachable under `offline-first`,
    /// an entry of the client's own partition is selected by its partition, not by the credential it was requested with.
    func reuse(of found: [CacheEntry], for request: RequestHead, rules: ReuseContext, now: Timestamp) -> Reuse {
        let selecting = selecting(for: request, among: found.map(\.response))
        let isForOwner = !rules.isReachable && rules.policy == .offlineFirst
        let candidates = found.map { entry in
            isForOwner ? forOwner(entry, selecting: selecting, isByAuthorization: rules.isByAuthorization) : entry.response
        }
        return Reuse.decide(candidates: candidates, request: selecting, context: rules, now: now)
    }

    /// Returns the entry's response; that of a private partition as if it had been requested with the credential of `selecting`.
    func forOwner(_ entry: CacheEntry, selecting: RequestHead, isByAuthorization: Bool) -> StoredResponse {
        entry.key.partition == .shared
            ? entry.response : Vary.forOwner(entry.response, request: selecting, isByAuthorization: isByAuthorization)
    }

    /// Decides about the reuse of stored responses for this request (RFC 9111 §4).
    func reuse(of candidates: [StoredResponse], for request: RequestHead, rules: ReuseContext, now: Timestamp) -> Reuse {
        Reuse.decide(candidates: candidates, request: selecting(for: request, among: candidates), context: rules, now: now)
    }

    /// Returns the request as used for selection among the stored responses `candidates`: without its credentials, where they select
    /// (SECURITY.md; `docs/security-model.md`).
    func selecting(for request: RequestHead, among candidates: [StoredResponse]) -> RequestHead {
        guard Vary.isBySecret(candidates) else { return request }
        var selecting = request
        selecting.fields = veiled(request.fields)
        return selecting
    }

    /// Returns the fields as stored: each secret value is replaced by its HMAC under this installation's key.
    func veiled(_ fields: HTTPFields) -> HTTPFields { Vary.veiled(fields) { data.identityName($0.utf8) } }
}

extension EntryLookup {
    /// Returns the entry's whole body, decoded from `gzip` or `deflate`; nil if it is gone, in another coding, only a part, or longer than
    /// `limit` bytes.
    /// - Throws: `FileError`, `DatabaseError`.
    func content(of entry: CacheEntry, limit: Int) async throws -> [UInt8]? {
        guard entry.response.part == nil, entry.response.bodyLength <= Int64(limit), let body = try await cache.body(of: entry) else {
            return nil
        }
        let bytes = try await cache.read(0..<entry.response.bodyLength, of: body)
        return bytes.decoded(of: entry.response.head, upTo: limit).map { Array($0.readableBytesView) }
    }
}
