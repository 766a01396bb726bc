// This cache's member of the `Cache-Status` field, which describes how a response was produced (RFC 9211,
// docs/reference/headers.md#cache-status).

/// One member of `Cache-Status`, appended to the members of upstream caches.
package struct CacheStatus: Hashable, Sendable {
    /// The reason why the request was forwarded (RFC 9211 §2.2).
    package enum Forward: String, CaseIterable, Sendable, Codable {
        /// The cache was configured not to handle the request.
        case bypass
        /// The method's semantics require forwarding.
        case method
        /// Nothing is stored for the URI.
        case uriMiss = "uri-miss"
        /// The stored responses were selected by other values of the fields in their `Vary`.
        case varyMiss = "vary-miss"
        /// No usable response is stored, for an unspecified reason.
        case miss
        /// The request's directives did not allow the stored fresh response.
        case request
        /// The stored response was stale.
        case stale
        /// Only a part is stored.
        case partial
    }

    /// The name of this cache in the list, a token.
    package var cache: String
    package var hit: Bool
    /// Remaining freshness in seconds; negative when stale.
    package var ttl: Int64?
    package var fwd: Forward?
    /// The upstream's status, if it differs from the reply's.
    package var fwdStatus: Int?
    /// True if the upstream's response was stored.
    package var stored: Bool
    /// True if the request shared the fetch of another request.
    package var collapsed: Bool
    /// The reason, if the other parameters do not give it.
    package var detail: String?

    package init(
        cache: String = "rockpool", hit: Bool, ttl: Int64? = nil, fwd: Forward? = nil, fwdStatus: Int? = nil, stored: Bool = false,
        collapsed: Bool = false, detail: String? = nil
    ) {
        self.cache = cache
        self.hit = hit
        self.ttl = ttl
        self.fwd = fwd
        self.fwdStatus = fwdStatus
        self.stored = stored
        self.collapsed = collapsed
        self.detail = detail
    }

    /// The member in field syntax: `rockpool; hit; ttl=57`.
    package var fieldValue: String {
        var text = cache
        if hit { text += "; hit" }
        if let fwd { text += "; fwd=\(fwd.rawValue)" }
        if let fwdStatus { text += "; fwd-status=\(fwdStatus)" }
        if let ttl { text += "; ttl=\(ttl)" }
        if stored { text += "; stored" }
        if collapsed { text += "; collapsed" }
        if let detail { text += "; detail=\(StructuredText.bareItem(detail))" }
        return text
    }
}
