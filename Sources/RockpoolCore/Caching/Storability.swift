// Whether a response may be stored, and for whom (RFC 9111 §3, §3.5, §5.2.2; design §5; security.md §3).
import HTTPTypes

/// The decision about one response.
package enum Storability: Hashable, Sendable {
    case store(StoragePlan)
    case refuse(Reason)

    /// Why a response is not stored.
    package enum Reason: String, CaseIterable, Sendable, Codable {
        /// Only GET creates entries, and other methods where the route caches by body.
        case method
        case requestBody = "request-body"
        /// The request carries a field that steers frameworks but is no part of the key.
        case overrideHeader = "override-header"
        /// A request field holds bytes that were lost in decoding, so that different values look the same.
        case undecodableField = "undecodable-field"
        case requestNoStore = "request-no-store"
        case noStore = "no-store"
        /// The route or the strategy says so.
        case route
        case status
        /// `must-understand`, and a status this cache does not know.
        case notUnderstood = "not-understood"
        /// `Vary: *`, or a `Vary` that cannot be read.
        case varyStar = "vary-star"
        case isPrivate = "private"
        case setCookie = "set-cookie"
        /// An answer to credentials that may not be shared, and nobody to keep it for.
        case credentials
        /// Nothing in RFC 9111 §3 allows it.
        case notCacheable = "not-cacheable"
        /// It could be stored but never reused.
        case neverReusable = "never-reusable"
    }

    /// Decides about `response` to `request`; bodies and sizes are not its concern.
    package static func decide(request: RequestHead, response: ResponseHead, context: StorageContext) -> Storability {
        if let reason = refusal(of: request, context: context) { return .refuse(reason) }
        let validity = Validity(response, requestTime: .distantPast, responseTime: .distantPast)
        if let reason = refusal(of: response, validity: validity, context: context) { return .refuse(reason) }
        if Vary.selectingFields(response: response, request: request) == nil { return .refuse(.varyStar) }
        return partitioned(request: request, response: response, directives: validity.directives, context: context)
    }
}

extension Storability {
    private static func refusal(of request: RequestHead, context: StorageContext) -> Reason? {
        if context.rule == .never || context.strategy == .networkOnly { return .route }
        if !context.cachesByBody {
            if request.method != .get { return .method }
            if context.hasBody { return .requestBody }
        }
        for field in request.fields {
            if RequestOverride.isUnkeyed(field.name) { return .overrideHeader }
            if field.value.unicodeScalars.contains("\u{FFFD}") { return .undecodableField }
        }
        return CacheControl(request: request.fields).noStore ? .requestNoStore : nil
    }

    private static func refusal(of response: ResponseHead, validity: Validity, context: StorageContext) -> Reason? {
        let status = response.status
        let directives = validity.directives
        if StatusCode.isNeverStored(status) { return .status }
        let isUnderstood = StatusCode.isUnderstood(status)
        if directives.mustUnderstand && !isUnderstood { return .notUnderstood }
        // A cache that knows the status is to ignore the `no-store` meant for those that do not know `must-understand`.
        if directives.noStore && !directives.mustUnderstand && context.rule != .always { return .noStore }

        let isKept = context.rule == .always || context.policy == .offlineFirst
        if isKept && StatusCode.isKeptForOffline(status) { return nil }
        if validity.hasExplicitFreshness { return isReusable(validity) ? nil : .neverReusable }
        if StatusCode.needsExplicitFreshness(status) { return .status }
        let isMarked = directives.isPublic || directives.isPrivate == .all
        guard isMarked || StatusCode.isHeuristicallyCacheable(status) else { return .notCacheable }
        return isReusable(validity) ? nil : .neverReusable
    }

    /// `no-cache` without anything to validate by means fetching the whole each time.
    private static func isReusable(_ validity: Validity) -> Bool { validity.directives.noCache != .all || validity.hasValidator }

    private static func partitioned(
        request: RequestHead, response: ResponseHead, directives: CacheControl, context: StorageContext
    ) -> Storability {
        let hasCredentials = context.identity != nil || request.fields.contains(.authorization)
        guard let obstacle = obstacleToSharing(response, directives: directives, hasCredentials: hasCredentials) else {
            let stripped = directives.isPrivate.names + directives.noCache.names + [.setCookie]
            return .store(StoragePlan(partition: .shared, stripped: stripped, allowsHeuristic: !hasCredentials))
        }
        // Nobody to keep it for, unless declaring the upstream was the consent to keep it for whoever comes without credentials.
        if context.identity == nil, hasCredentials || context.policy != .offlineFirst { return .refuse(obstacle) }
        let stripped = directives.noCache.names + [.setCookie]
        return .store(StoragePlan(partition: .own(context.identity), stripped: stripped, allowsHeuristic: !hasCredentials))
    }

    /// What keeps a response out of the shared partition (RFC 9111 §3.5, §5.2.2.7).
    private static func obstacleToSharing(_ response: ResponseHead, directives: CacheControl, hasCredentials: Bool) -> Reason? {
        if directives.isPrivate == .all { return .isPrivate }
        // A field the origin excepts by name is not kept anyway; then `Set-Cookie` does no harm.
        let excepted = directives.isPrivate.names + directives.noCache.names
        if response.fields.contains(.setCookie), !excepted.contains(.setCookie) { return .setCookie }
        let isShareable = directives.isPublic || directives.sMaxAge != nil || directives.mustRevalidate
        return hasCredentials && !isShareable ? .credentials : nil
    }
}
