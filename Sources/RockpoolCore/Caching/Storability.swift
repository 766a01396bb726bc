// Decides whether a response may be stored, and in which partition (RFC 9111 §3, §3.5, §5.2.2; docs/caching.md#storability;
// docs/security-model.md#whose-response).
package import HTTPTypes

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
        if context.keeping == .contentInOwnPartition, status != 200 { return .status }
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

/// The circumstances of one exchange that affect storing.
package struct StorageContext: Hashable, Sendable {
    /// Nil: the request carries no credentials. Empty: it may carry some, but the upstream's `identity: single` disables partitions.
    package var identity: String?
    package var policy: CachePolicy
    package var strategy: Strategy
    /// The route's rule for storing.
    package var rule: Route.Store
    /// True if the request has a body.
    package var hasBody: Bool
    /// True if the route caches by the request's body (`cache: body`), which permits storing methods other than GET.
    package var cachesByBody: Bool
    /// True if the route declares its requests to be reads by their body (`cache: body`), also for a request without one.
    package var isReadByBody: Bool
    /// True if the route or its category gives a response without freshness of its own a `ttl`.
    package var assignsFreshness: Bool
    /// True if the route's `ttl` counts more than what the response says: `no-cache` without a validator is then no reason against storing.
    package var overridesFreshness: Bool
    package var keeping: Keeping

    package init(
        identity: String? = nil, policy: CachePolicy = .standard, strategy: Strategy = .cacheFirst, rule: Route.Store = .standard,
        hasBody: Bool = false, cachesByBody: Bool = false, isReadByBody: Bool = false, assignsFreshness: Bool = false,
        overridesFreshness: Bool = false, keeping: Keeping = .byResponse
    ) {
        self.identity = identity
        self.policy = policy
        self.strategy = strategy
        self.rule = rule
        self.hasBody = hasBody
        self.cachesByBody = cachesByBody
        self.isReadByBody = isReadByBody
        self.assignsFreshness = assignsFreshness
        self.overridesFreshness = overridesFreshness
        self.keeping = keeping
    }
}

/// How far a response decides in which partition it is kept, and whether at all.
package enum Keeping: Hashable, Sendable {
    case byResponse
    /// In the partition of its request, also if it says that all may have it.
    case inOwnPartition
    /// There, if it is content or a part of it: its name says which bytes these are.
    case contentInOwnPartition
}

/// The plan for one response (RFC 9111 §3.1, docs/security-model.md#partitions).
package struct StoragePlan: Hashable, Sendable {
    package var partition: StoragePartition
    /// Fields that are relayed but not stored.
    package var stripped: [HTTPField.Name]
    /// True if a heuristic lifetime is permitted. Responses to credentials get one only if marked `public` or in the `single` partition.
    package var allowsHeuristic: Bool
    /// A POST response that represents its target, so that GET finds it (RFC 9110 §9.3.3).
    package var isForGet: Bool
    /// The identity whose request a shared response answered, if it may be shared only because it promises validation (RFC 9111 §3.5): other
    /// identities get it while it is fresh. Nil for all other responses.
    package var owner: String?

    package init(
        partition: StoragePartition, stripped: [HTTPField.Name] = [], allowsHeuristic: Bool = true, isForGet: Bool = false,
        owner: String? = nil
    ) {
        self.owner = owner
        self.partition = partition
        self.stripped = stripped
        self.allowsHeuristic = allowsHeuristic
        self.isForGet = isForGet
    }

    /// The name in the entry's key.
    package var identity: String { partition.name }

    /// The key to store the response to `request` under.
    /// - Parameter body: A digest of the request's body on routes that cache by body; else empty.
    package func key(for request: RequestHead, body: String = "") -> CacheKey {
        let method = isForGet ? HTTPRequest.Method.get : request.method
        return CacheKey(method: method.rawValue, origin: request.origin, target: request.target, identity: identity, body: body)
    }

    /// The value for `StoredResponse.assignedTTL`: the named category's ttl, else zero if heuristics are not permitted.
    package func assignedTTL(named ttl: TimeSpan?) -> TimeSpan? { ttl ?? (allowsHeuristic ? nil : .zero) }

    /// The head to store: without stripped and connection-specific fields, with a `Date` (RFC 9110 §6.6.1); a 206 of all bytes as a 200.
    package func head(of response: ResponseHead, receivedAt: Timestamp) -> ResponseHead {
        let excluded = StoredFields.excluded(from: response.fields)
        var stored = ResponseHead(status: response.status)
        for field in response.fields where !excluded.contains(field.name.canonicalName) && !stripped.contains(field.name) {
            stored.fields.append(field)
        }
        if !stored.fields.contains(.date) { stored.fields[.date] = HTTPDate.format(receivedAt) }
        return PartialResponse.normalized(stored)
    }
}

/// Fields that belong to a connection or to one exchange, not to the representation (RFC 9111 §3.1, RFC 9110 §7.6.1).
enum StoredFields {
    private static let neverStored: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "proxy-authenticate",
        "proxy-authentication-info", "proxy-authorization", "set-cookie",
    ]

    /// The canonical names of a message's fields that are not stored, including those listed in its `Connection`.
    static func excluded(from fields: HTTPFields) -> Set<String> {
        guard let connection = fields[.connection] else { return neverStored }
        return neverStored.union(FieldList.members(of: connection).map { $0.lowercased() })
    }
}

/// The conditions under which an error response describes the target and not the request (docs/security-model.md#poisoned-errors).
enum OrdinaryRequest {
    /// True if an error may be stored at all, for its requester alone: no field provokes one, and the request is at most 4 KiB long
    /// (servers start to reject requests at about 8 KiB).
    static func mayStoreError(_ request: RequestHead) -> Bool {
        guard !request.fields.contains(where: { provoking.contains($0.name) }) else { return false }
        return request.fields.reduce(request.target.utf8.count) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count } <= .kib(4)
    }

    /// True if an error may be stored for other clients: browsers and common clients send every one of the request's fields.
    ///
    /// An error that `isEverFresh` must not answer a request that requires revalidation either (RFC 9111 §5.2.1): with such requests a
    /// client could renew the error indefinitely. An error that is never fresh is used only while the upstream is away.
    ///
    /// Credentials are not among these fields: an error provoked by a wrong credential applies to its sender only.
    static func mayShareError(_ request: RequestHead, isEverFresh: Bool) -> Bool {
        guard request.fields.allSatisfy({ isCommon($0.name) }) else { return false }
        // One line of each is added by this proxy. A client's own line may be malformed, or too long for an origin.
        guard request.fields[values: .via].count <= 1, request.fields[values: .cdnLoop].count <= 1 else { return false }
        guard isEverFresh else { return true }
        let wishes = CacheControl(request: request.fields)
        return wishes.noCache == .absent && wishes.maxAge == nil && wishes.minFresh == nil
    }

    private static func isCommon(_ name: HTTPField.Name) -> Bool {
        common.contains(name.canonicalName) || name.canonicalName.hasPrefix("sec-ch-") || name.canonicalName.hasPrefix("sec-fetch-")
            || UnkeyedField(name) == .correlates
    }

    private static let provoking: Set<HTTPField.Name> = [
        .range, .ifMatch, .ifUnmodifiedSince, .expect, .maxForwards, .contentType, .contentEncoding, .contentRange, .upgrade,
    ]

    /// Fields of read requests, in lower case.
    private static let common: Set<String> = [
        // RFC 9110 §10.1, §12.5, §13.1; RFC 9111 §5.
        "accept", "accept-encoding", "accept-language", "cache-control", "if-modified-since", "if-none-match", "pragma", "referer",
        "user-agent",
        // Sent by browsers, in addition to the prefixes in `isCommon`.
        "alt-used", "available-dictionary", "device-memory", "dictionary-id", "dnt", "downlink", "dpr", "ect", "origin", "priority",
        "purpose", "rtt", "save-data", "sec-gpc", "sec-purpose", "service-worker", "service-worker-navigation-preload",
        "upgrade-insecure-requests", "viewport-width", "width", "x-requested-with",
        // Download tools (RFC 9530 §4).
        "want-content-digest", "want-digest", "want-repr-digest",
        // Added by this proxy to forwarded requests (RFC 9110 §7.6.3, RFC 8586).
        "cdn-loop", "via",
        // Labels of the http-tests/cache-tests suite; no other origin reads them.
        "req-num", "test-id", "test-name",
    ]
}

/// Many programs send their credential only after a 401 that asks for it (RFC 9110 §11.6.1; docs/caching.md#challenges). Without that
/// answer they would never reach the copies that are stored for their identity.
package enum KeptChallenge {
    /// Schemes that a program answers with one request. Others (NTLM, Negotiate) take several requests on one connection.
    private static let schemes: Set<String> = ["basic", "digest", "bearer"]
    /// The schemes that count in answers to writes: their programs send a first request without the name and the password that they have.
    private static let schemesOfWrites: Set<String> = ["basic", "digest"]
    /// The most protection spaces that are looked up for one request.
    private static let depth = 16

    /// True for a 401 that asks a request without credentials for such a one, at an upstream whose answers are kept.
    /// - Parameter identity: the partition of the request; nil without credentials.
    package static func isOne(_ response: ResponseHead, to request: RequestHead, policy: CachePolicy, identity: String?) -> Bool {
        let known = request.method.isSafe ? Self.schemes : schemesOfWrites
        return response.status == 401 && mayBeGiven(to: request, policy: policy, identity: identity)
            && response.fields[values: .wwwAuthenticate].contains { !schemes(in: $0).isDisjoint(with: known) }
    }

    /// True for a request that a challenge can answer.
    package static func mayBeGiven(to request: RequestHead, policy: CachePolicy, identity: String?) -> Bool {
        policy == .offlineFirst && identity == nil && !request.fields.contains(.authorization)
    }

    /// The protection spaces that a request may be in, the narrowest first: its directory, and those above (RFC 7617 §2.2). A POST may be open
    /// to all beside one that is not, so it has a space of its own.
    package static func spaces(of request: RequestHead) -> [String] {
        let path = request.path
        if request.method == .post { return [path] }
        var (spaces, end) = ([String](), path.endIndex)
        while spaces.count < depth, let slash = path[..<end].lastIndex(of: "/") {
            spaces.append(String(path[...slash]))
            end = slash
        }
        return spaces
    }

    /// The head of a challenge as it is kept for its space: without what concerns only the request that it answered.
    package static func head(of challenge: ResponseHead) -> ResponseHead {
        ResponseHead(
            status: 401, fields: HTTPFields(challenge.fields.filter { [.wwwAuthenticate, .date].contains($0.name) }))
    }

    /// The schemes of the challenges in one field, which may hold several (RFC 9110 §11.6.1).
    private static func schemes(in value: String) -> Set<String> {
        // A member without a scheme is a further parameter of the challenge before it.
        Set(FieldList.members(of: value).map { $0.prefix { $0 != " " && $0 != "=" }.lowercased() })
    }
}

// MARK: - Types of content

/// `category: auto`.
package enum CategoryGuess {
    /// The name of a built-in category: `assets` for images, fonts, media, code and archives; `important` for documents and data;
    /// `ephemeral` for streams and for responses without a usable type.
    package static func name(for response: ResponseHead) -> String {
        guard let value = response.fields.single(.contentType) else { return CacheCategory.ephemeral.name }
        let essence = FieldList.trimmed(value.prefix { $0 != ";" }).lowercased()
        guard let slash = essence.firstIndex(of: "/") else { return CacheCategory.ephemeral.name }
        let subtype = essence[essence.index(after: slash)...]
        switch essence[..<slash] {
        case "image", "font", "audio", "video", "model": return CacheCategory.assets.name
        case "text": return text(subtype)
        case "application": return application(subtype)
        // The type that S3 gives to objects without one.
        case "binary" where subtype == "octet-stream": return CacheCategory.assets.name
        default: return CacheCategory.ephemeral.name
        }
    }

    private static func text(_ subtype: Substring) -> String {
        switch subtype {
        case "css", "javascript", "ecmascript": CacheCategory.assets.name
        case "event-stream": CacheCategory.ephemeral.name
        default: CacheCategory.important.name
        }
    }

    private static func application(_ subtype: Substring) -> String {
        switch subtype {
        case "javascript", "x-javascript", "ecmascript", "wasm", "pdf", "zip", "gzip", "x-tar", "zstd", "octet-stream", "font-woff",
            "vnd.ms-fontobject", "x-font-ttf", "x-font-woff", "x-7z-compressed", "x-bzip2", "x-xz", "java-archive":
            CacheCategory.assets.name
        case "x-ndjson", "json-seq", "stream+json", "grpc": CacheCategory.ephemeral.name
        default: CacheCategory.important.name
        }
    }
}

/// Compares a target's file name with the type of the content received for it (web cache deception;
/// docs/security-model.md#cache-deception).
enum DeceptivePath {
    private static let staticNames: Set<Substring> = [
        "css", "js", "mjs", "jpg", "jpeg", "png", "gif", "ico", "svg", "webp", "avif", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4",
        "webm", "wasm", "pdf",
    ]

    /// True if `target` ends like a static file, whatever precedes that, and the content is a page or JSON.
    static func isPromisedOtherwise(_ target: String, fields: HTTPFields) -> Bool {
        guard MediaType.isPage(fields) || MediaType.isJSON(fields) else { return false }
        let path = target.prefix { $0 != "?" }.lowercased()
        guard let dot = path.lastIndex(of: ".") else { return false }
        return staticNames.contains(path[path.index(after: dot)...])
    }
}
