// Whether a response may be stored, and for whom (RFC 9111 §3, §3.5, §5.2.2; design §5; security.md §3).
import HTTPTypes

/// The decision about one response.
package enum Storability: Hashable, Sendable {
    case store(StoragePlan)
    case refuse(Reason)

    /// Why a response is not stored.
    package enum Reason: String, CaseIterable, Sendable, Codable {
        /// Only GET creates entries, a POST whose answer stands for its target, and other methods where the route caches by body.
        case method
        case requestBody = "request-body"
        /// The request carries a field that steers frameworks but is no part of the key.
        case overrideHeader = "override-header"
        /// The response varies by a request field whose value is not UTF-8, so that different values look the same.
        case undecodableField = "undecodable-field"
        case requestNoStore = "request-no-store"
        case noStore = "no-store"
        /// The route or the strategy says so.
        case route
        case status
        /// A part that was not asked for, is not what was asked for, or of something of unknown length.
        case partial
        /// A stream of events (HTML §9.2): it is not a representation but what happens while somebody listens.
        case eventStream = "event-stream"
        /// `must-understand`, and a status this cache does not know.
        case notUnderstood = "not-understood"
        /// `Vary: *`, or a `Vary` that cannot be read.
        case varyStar = "vary-star"
        case isPrivate = "private"
        case setCookie = "set-cookie"
        /// An answer to credentials that may not be shared, and nobody to keep it for.
        case credentials
        /// A page or data under the name of a static file, in answer to credentials (`DeceptivePath`).
        case deceptivePath = "deceptive-path"
        /// Nothing in RFC 9111 §3 allows it.
        case notCacheable = "not-cacheable"
        /// An error, where a good copy is stored (`Replacement`).
        case goodCopy = "good-copy"
        /// It could be stored but never reused.
        case neverReusable = "never-reusable"
    }

    /// Decides about `response` to `request`; bodies and sizes are not its concern.
    package static func decide(request: RequestHead, response: ResponseHead, context: StorageContext) -> Storability {
        if let reason = refusal(of: request, context: context) { return .refuse(reason) }
        let validity = Validity(response, requestTime: .distantPast, responseTime: .distantPast)
        if context.keepsForGet(request) && !standsForTarget(response, of: request, validity: validity) { return .refuse(.method) }
        if let reason = refusal(of: response, to: request, validity: validity, context: context) { return .refuse(reason) }
        guard let selecting = Vary.selectingFields(response: response, request: request) else { return .refuse(.varyStar) }
        if selecting.contains(where: { $0.value.unicodeScalars.contains("\u{FFFD}") }) { return .refuse(.undecodableField) }
        return partitioned(request: request, response: response, directives: validity.directives, context: context)
    }
}

extension Storability {
    private static func refusal(of request: RequestHead, context: StorageContext) -> Reason? {
        if context.rule == .never || context.strategy == .networkOnly { return .route }
        if !context.cachesByBody {
            if request.method != .get && request.method != .post { return .method }
            if context.hasBody && request.method == .get { return .requestBody }
        }
        for field in request.fields {
            if RequestOverride.isUnkeyed(field.name) { return .overrideHeader }
        }
        return CacheControl(request: request.fields).noStore ? .requestNoStore : nil
    }

    /// RFC 9110 §9.3.3: an answer to POST that says it is the target's own representation, and for how long, answers GET and HEAD.
    private static func standsForTarget(_ response: ResponseHead, of request: RequestHead, validity: Validity) -> Bool {
        guard response.status == 200, validity.hasExplicitFreshness, let location = response.fields.single(.contentLocation) else {
            return false
        }
        return URIReference.resolve(location, origin: request.origin, target: request.target) == request.url
    }

    private static func refusal(
        of response: ResponseHead, to request: RequestHead, validity: Validity, context: StorageContext
    ) -> Reason? {
        let status = response.status
        let directives = validity.directives
        if StatusCode.isNeverStored(status) { return .status }
        if MediaType.essence(response.fields) == "text/event-stream" { return .eventStream }
        if status == 206 && !PartialResponse.isStorable(response, to: request) { return .partial }
        let isUnderstood = StatusCode.isUnderstood(status)
        if directives.mustUnderstand && !isUnderstood { return .notUnderstood }
        // A cache that knows the status is to ignore the `no-store` meant for those that do not know `must-understand`.
        if directives.noStore && !directives.mustUnderstand && context.rule != .always { return .noStore }

        if status >= 400 {
            // Without an identity it would be for others, offline at least.
            let isKeepable = OrdinaryRequest.mayStoreError(request)
            guard isKeepable, context.identity != nil || OrdinaryRequest.mayShareError(request) else { return .status }
        }
        let isKept = context.rule == .always || context.policy == .offlineFirst
        if isKept && StatusCode.isKeptForOffline(status) { return nil }
        if validity.hasExplicitFreshness { return isReusable(validity) ? nil : .neverReusable }
        // Marked `public` it may be kept by a heuristic, whatever the status (RFC 9111 §4.2.2), where there is something to guess by.
        if StatusCode.needsExplicitFreshness(status), !directives.isPublic || validity.lastModified == nil { return .status }
        if StatusCode.isProvocable(status), validity.lastModified == nil { return .status }
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
        let isForGet = context.keepsForGet(request)
        let obstacle =
            obstacleToSharing(response, directives: directives, hasCredentials: hasCredentials)
            ?? (hasCredentials && DeceptivePath.isPromisedOtherwise(request.target, response.fields) ? .deceptivePath : nil)
        guard let obstacle else {
            let stripped = directives.isPrivate.names + directives.noCache.names + [.setCookie]
            return .store(
                StoragePlan(
                    partition: .shared, stripped: stripped, allowsHeuristic: !hasCredentials || directives.isPublic, isForGet: isForGet))
        }
        // Nobody to keep it for, unless declaring the upstream was the consent to keep it for whoever comes without credentials.
        if context.identity == nil, hasCredentials || context.policy != .offlineFirst { return .refuse(obstacle) }
        let stripped = directives.noCache.names + [.setCookie]
        let own = StoragePartition.own(context.identity)
        return .store(
            StoragePlan(partition: own, stripped: stripped, allowsHeuristic: !hasCredentials || own == .single, isForGet: isForGet))
    }

    /// What keeps a response out of the shared partition (RFC 9111 §3.5, §5.2.2.7).
    private static func obstacleToSharing(_ response: ResponseHead, directives: CacheControl, hasCredentials: Bool) -> Reason? {
        if directives.isPrivate == .all { return .isPrivate }
        // A field the origin excepts by name is not kept anyway; then `Set-Cookie` does no harm.
        let excepted = directives.isPrivate.names + directives.noCache.names
        if response.fields.contains(.setCookie), !excepted.contains(.setCookie) { return .setCookie }
        // An error may be the credential's work, whatever it says of itself.
        return hasCredentials && (response.status >= 400 || !isShareable(directives)) ? .credentials : nil
    }

    /// Whether what a request with credentials was answered may be anyone's (RFC 9111 §3.5).
    package static func isShareable(_ directives: CacheControl) -> Bool {
        directives.isPublic || directives.sMaxAge != nil || directives.mustRevalidate
    }
}

extension StorageContext {
    /// Whether the answer can be kept for GET only: to a POST whose body is no part of the key.
    fileprivate func keepsForGet(_ request: RequestHead) -> Bool { request.method == .post && !cachesByBody }
}
