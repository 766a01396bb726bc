// What a reply says of how it came about: our member of the `Cache-Status` field (RFC 9211, contract §3).

/// One member of `Cache-Status`, appended to what upstream caches said.
package struct CacheStatus: Hashable, Sendable {
    /// Why the request went forward (RFC 9211 §2.2).
    package enum Forward: String, CaseIterable, Sendable, Codable {
        /// The cache was told not to handle the request.
        case bypass
        /// The method's semantics require forwarding.
        case method
        /// Nothing is stored for the URI.
        case uriMiss = "uri-miss"
        /// Something is, but for other values of the fields its `Vary` names.
        case varyMiss = "vary-miss"
        /// Nothing usable is stored, without saying which of the two.
        case miss
        /// The request's directives did not allow the fresh response stored.
        case request
        /// The response stored was stale.
        case stale
        /// Only a part is stored.
        case partial
    }

    /// The name of this cache in the list, a token.
    package var cache: String
    package var hit: Bool
    /// Seconds of freshness left; negative when stale.
    package var ttl: Int64?
    package var fwd: Forward?
    /// The status the upstream answered, when it is not the one of the reply.
    package var fwdStatus: Int?
    /// Whether the upstream's response was stored.
    package var stored: Bool
    /// Whether the request shared the fetch of another.
    package var collapsed: Bool
    /// Why, where the other parameters do not say it.
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

    /// The member as the field carries it: `rockpool; hit; ttl=57`.
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
