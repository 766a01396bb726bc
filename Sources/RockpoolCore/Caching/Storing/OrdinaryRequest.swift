// Decides which requests may store errors, and in which partition: a request field outside the cache key can provoke an error
// (docs/security-model.md#poisoned-errors).
import HTTPTypes

/// The conditions under which an error response describes the target and not the request.
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
