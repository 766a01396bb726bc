// Decides whether a response may be stored, and in which partition (RFC 9111 §3, §3.5, §5.2.2; docs/caching.md#storability;
// docs/security-model.md#whose-response).
import HTTPTypes

/// The decision about one response.
package enum Storability: Hashable, Sendable {
    case store(StoragePlan)
    case refuse(Reason)

    /// The reason why a response is not stored.
    package enum Reason: String, CaseIterable, Sendable, Codable {
        /// Storable methods are GET, POST if the response represents the target, and others where the route caches by body.
        case method
        case requestBody = "request-body"
        /// The request carries a field that changes how frameworks respond but is not part of the key.
        case overrideHeader = "override-header"
        /// The response varies by a request field with a value that is not UTF-8, so that different values would compare equal.
        case undecodableField = "undecodable-field"
        case requestNoStore = "request-no-store"
        case noStore = "no-store"
        /// The route or the strategy forbids storing.
        case route
        case status
        /// A part that was not requested, does not match the requested range, or has an unknown complete length.
        case partial
        /// An event stream (HTML §9.2): not a representation, but a live feed.
        case eventStream = "event-stream"
        /// A part of an exchange of git or Mercurial (`RepositoryExchange`).
        case gitExchange = "git-exchange"
        /// `must-understand` with a status code unknown to this cache.
        case notUnderstood = "not-understood"
        /// `Vary: *`, or an unreadable `Vary`.
        case varyStar = "vary-star"
        case isPrivate = "private"
        case setCookie = "set-cookie"
        /// A response to a request with credentials that may not be shared, without an identity to store it for.
        case credentials
        /// A page or data under the name of a static file, in response to credentials (`DeceptivePath`).
        case deceptivePath = "deceptive-path"
        /// No rule of RFC 9111 §3 permits storing.
        case notCacheable = "not-cacheable"
        /// An error, while a good copy is stored (`Replacement`).
        case goodCopy = "good-copy"
        /// The response could be stored but never reused.
        case neverReusable = "never-reusable"
    }

    /// Decides about `response` to `request`, without regard to its body and size.
    package static func decide(request: RequestHead, response: ResponseHead, context: StorageContext) -> Storability {
        if let reason = refusal(of: request, context: context) { return .refuse(reason) }
        let validity = Validity(response, requestTime: .distantPast, responseTime: .distantPast)
        if context.keepsForGet(request) && !standsForTarget(response, of: request, validity: validity) { return .refuse(.method) }
        if let reason = refusal(of: response, to: request, validity: validity, context: context) { return .refuse(reason) }
        guard let selecting = Vary.selectingFields(response: response, request: request) else { return .refuse(.varyStar) }
        let implied = Vary.selectingFields(request.fields.selectingNames, of: request)
        if (selecting + implied).contains(where: { $0.value.unicodeScalars.contains("\u{FFFD}") }) { return .refuse(.undecodableField) }
        return partitioned(request: request, response: response, validity: validity, context: context)
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
            if UnkeyedField(field.name) == .overrides { return .overrideHeader }
        }
        return CacheControl(request: request.fields).noStore ? .requestNoStore : nil
    }

    /// RFC 9110 §9.3.3: a POST response that declares itself a representation of the target, with explicit freshness, serves GET and HEAD.
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
        let isChallenge = KeptChallenge.isOne(response, to: request, policy: context.policy, identity: context.identity)
        if StatusCode.isNeverStored(status), !isChallenge { return .status }
        if context.keeping == .contentInOwnPartition, status != 200, status != 206 { return .status }
        if MediaType.essence(of: response.fields) == "text/event-stream" { return .eventStream }
        switch RepositoryExchange.part(response) {
        case nil: break
        case .fetch where context.isReadByBody || context.rule == .always: break
        case .other where context.rule == .always: break
        case .fetch, .push, .other: return .gitExchange
        }
        if status == 206 && !PartialResponse.isStorable(response, to: request) { return .partial }
        let isUnderstood = StatusCode.isUnderstood(status)
        if directives.mustUnderstand && !isUnderstood { return .notUnderstood }
        // A cache that understands the status code ignores `no-store`, which addresses caches that do not know `must-understand`.
        if directives.noStore && !directives.mustUnderstand && context.rule != .always { return .noStore }

        if isChallenge { return nil }
        if status >= 400 {
            // Without an identity the error would be served to other clients, at least offline.
            let isKeepable = OrdinaryRequest.mayStoreError(request)
            let isEverFresh = validity.hasExplicitFreshness || validity.lastModified != nil || context.assignsFreshness
            guard isKeepable, context.identity != nil || OrdinaryRequest.mayShareError(request, isEverFresh: isEverFresh) else {
                return .status
            }
        }
        let isKept = context.rule == .always || context.policy == .offlineFirst
        if isKept && StatusCode.isKeptForOffline(status) { return nil }
        // A cookie that is set by a redirect is a step of a login or of a logout.
        if isKept, StatusCode.isTemporaryRedirect(status), !response.fields.contains(.setCookie) { return nil }
        let isReusable = context.overridesFreshness || Self.isReusable(validity)
        if validity.hasExplicitFreshness { return isReusable ? nil : .neverReusable }
        // With `public` it may be stored by heuristics, whatever the status (RFC 9111 §4.2.2), if it has a `Last-Modified`.
        if StatusCode.needsExplicitFreshness(status), !directives.isPublic || validity.lastModified == nil { return .status }
        if StatusCode.isProvocable(status), validity.lastModified == nil { return .status }
        let isMarked = directives.isPublic || directives.isPrivate == .all
        guard isMarked || StatusCode.isHeuristicallyCacheable(status) else { return .notCacheable }
        return isReusable ? nil : .neverReusable
    }

    /// With `no-cache` but no validator, every use would fetch the whole response.
    private static func isReusable(_ validity: Validity) -> Bool { validity.directives.noCache != .all || validity.hasValidator }

    private static func partitioned(
        request: RequestHead, response: ResponseHead, validity: Validity, context: StorageContext
    ) -> Storability {
        let directives = validity.directives
        let hasCredentials = context.identity != nil || request.fields.contains(.authorization)
        let isForGet = context.keepsForGet(request)
        let obstacle =
            (context.keeping != .byResponse || isForRequesterOnly(response, validity: validity) ? .credentials : nil)
            ?? obstacleToSharing(response, directives: directives, hasCredentials: hasCredentials)
            ?? (hasCredentials && DeceptivePath.isPromisedOtherwise(request.target, fields: response.fields) ? .deceptivePath : nil)
        guard let obstacle else {
            let stripped = directives.isPrivate.names + directives.noCache.names + [.setCookie]
            return .store(
                StoragePlan(
                    partition: .shared, stripped: stripped, allowsHeuristic: !hasCredentials || directives.isPublic, isForGet: isForGet,
                    owner: directives.isPublic || context.identity?.isEmpty == true ? nil : context.identity))
        }
        // No identity to store it for; only a declared upstream permits storing it for all clients without credentials.
        if context.identity == nil, hasCredentials || context.policy != .offlineFirst { return .refuse(obstacle) }
        let stripped = directives.noCache.names + [.setCookie]
        let own = StoragePartition.own(context.identity)
        return .store(
            StoragePlan(partition: own, stripped: stripped, allowsHeuristic: !hasCredentials || own == .single, isForGet: isForGet))
    }

    /// True for what the credentials of a request decide, even if it has none: a challenge, and a redirect without freshness of its own, such
    /// as that to a login.
    private static func isForRequesterOnly(_ response: ResponseHead, validity: Validity) -> Bool {
        if response.status == 401 { return true }
        return StatusCode.isTemporaryRedirect(response.status) && !validity.hasExplicitFreshness && !validity.directives.isPublic
    }

    /// The obstacle to storing a response in the shared partition (RFC 9111 §3.5, §5.2.2.7).
    private static func obstacleToSharing(_ response: ResponseHead, directives: CacheControl, hasCredentials: Bool) -> Reason? {
        if directives.isPrivate == .all { return .isPrivate }
        // Fields that the origin excludes by name are not stored; an excluded `Set-Cookie` is harmless.
        let excepted = directives.isPrivate.names + directives.noCache.names
        if response.fields.contains(.setCookie), !excepted.contains(.setCookie) { return .setCookie }
        // An error may be caused by the credential, whatever its directives permit.
        return hasCredentials && (response.status >= 400 || !isShareable(directives)) ? .credentials : nil
    }

    /// True if the directives permit sharing a response to a request with credentials (RFC 9111 §3.5).
    package static func isShareable(_ directives: CacheControl) -> Bool {
        directives.isPublic || directives.sMaxAge != nil || directives.mustRevalidate
    }
}

extension StorageContext {
    /// True if the response can be stored for GET only: a response to POST with a body that is not part of the key.
    fileprivate func keepsForGet(_ request: RequestHead) -> Bool { request.method == .post && !cachesByBody }
}
