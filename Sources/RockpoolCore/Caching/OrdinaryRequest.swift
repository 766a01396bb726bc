// Which requests store errors, and for whom: an error can be the work of a request field that no cache key holds (security.md §3, *CPDoS*).
import HTTPTypes

/// What a request must be so that an error in answer to it speaks of its target.
enum OrdinaryRequest {
    /// Whether an error may be stored at all, for its sender alone: no field asks for one, and the request is not so large that a server
    /// would refuse it, as they do from 8 KiB on.
    static func mayStoreError(_ request: RequestHead) -> Bool {
        guard !request.fields.contains(where: { provoking.contains($0.name) }) else { return false }
        return request.fields.reduce(request.target.utf8.count) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count } <= 4096
    }

    /// Whether an error may be stored for other clients: browsers and common clients send every one of its fields, and none of them
    /// insists on the origin (RFC 9111 §5.2.1), by which a client would renew the error as often as it likes.
    ///
    /// Credentials are not among these fields. An error that a false credential provokes is its sender's own.
    static func mayShareError(_ request: RequestHead) -> Bool {
        guard request.fields.allSatisfy({ isCommon($0.name.canonicalName) }) else { return false }
        // One line of each is ours. A client's own may be malformed, or too long for an origin.
        guard request.fields[values: .via].count <= 1, request.fields[values: .cdnLoop].count <= 1 else { return false }
        let wishes = CacheControl(request: request.fields)
        return wishes.noCache == .absent && wishes.maxAge == nil && wishes.minFresh == nil
    }

    private static func isCommon(_ name: String) -> Bool {
        common.contains(name) || name.hasPrefix("sec-ch-") || name.hasPrefix("sec-fetch-")
    }

    private static let provoking: Set<HTTPField.Name> = [
        .range, .ifMatch, .ifUnmodifiedSince, .expect, .maxForwards, .contentType, .contentEncoding, .contentRange, .upgrade,
    ]

    /// Fields of reads, in lower case.
    private static let common: Set<String> = [
        // RFC 9110 §10.1, §12.5, §13.1; RFC 9111 §5.
        "accept", "accept-encoding", "accept-language", "cache-control", "if-modified-since", "if-none-match", "pragma", "referer",
        "user-agent",
        // Browsers, beside the families of `isCommon`.
        "alt-used", "available-dictionary", "device-memory", "dictionary-id", "dnt", "downlink", "dpr", "ect", "origin", "priority",
        "purpose", "rtt", "save-data", "sec-gpc", "sec-purpose", "service-worker", "service-worker-navigation-preload",
        "upgrade-insecure-requests", "viewport-width", "width", "x-requested-with",
        // Download tools (RFC 9530 §4), and traces of instrumented clients (W3C Trace Context).
        "want-content-digest", "want-digest", "want-repr-digest", "traceparent", "tracestate",
        // Ours, on what we forward (RFC 9110 §7.6.3, RFC 8586).
        "cdn-loop", "via",
        // The labels of http-tests/cache-tests, by which caches are judged: no origin but its own reads them.
        "req-num", "test-id", "test-name",
    ]
}
