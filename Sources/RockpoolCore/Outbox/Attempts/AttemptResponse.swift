// Signals in an answer besides its status: a captive portal, a login page, an idempotency layer's error (docs/outbox.md#answers).
import HTTPTypes

struct AttemptResponse {
    let head: ResponseHead
    /// The beginning of the body, at most a few KiB.
    let bodyStart: [UInt8]
    let request: RequestHead

    var statusText: String { head.fields[.retryAfter].map { "\(head.status), Retry-After: \($0)" } ?? "\(head.status)" }
    var location: String? { head.fields[.location] }

    /// The reason why the answer did not come from the upstream, or nil: status 511 (RFC 6585 §6), a redirect to another host, an HTML page
    /// where JSON is expected.
    var portal: String? {
        switch head.status {
        case 511: return "511: the network asks for a login"
        case 300...399:
            guard let location, let host = RedirectTarget(location, from: request).otherHost else { return nil }
            return "redirected to another host: \(host)"
        case 200...299 where expectsJSON && MediaType.isPage(head.fields):
            return "a page came where JSON belongs"
        default: return nil
        }
    }

    /// True for a redirect whose path contains a login segment.
    var pointsToLogin: Bool {
        guard let path = location?.lowercased().prefix(while: { $0 != "?" }) else { return false }
        let segments = path.split(separator: "/").map { $0.prefix { $0 != "." } }
        return segments.contains { ["login", "log-in", "log_in", "signin", "sign-in", "sign_in", "auth"].contains($0) }
    }

    /// True if a 409 comes from an idempotency layer while the first request with the key still runs, not from an edit conflict.
    var saysKeyInProgress: Bool { concernsKey || head.fields[.retryAfter] != nil }

    /// True if the body mentions the idempotency key, as the problem documents of the draft, of Stripe and of others do.
    var concernsKey: Bool {
        String(decoding: bodyStart.prefix(.kib(4)), as: UTF8.self).lowercased().contains("idempoten")
    }

    /// OASIS repeatable requests: the key is older than the server's key storage; not an edit conflict.
    var saysFirstSentTooOld: Bool {
        head.fields[.repeatabilityResult]?.lowercased() == "rejected"
    }

    /// True if `Accept` contains JSON and no HTML, or names neither and the client itself sent JSON.
    private var expectsJSON: Bool {
        if let accept = request.fields[.accept] {
            if accept.contains(anyCase: "html") { return false }
            if accept.contains(anyCase: "json") { return true }
        }
        return request.fields[.contentType]?.contains(anyCase: "json") ?? false
    }
}
