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

    /// True for a redirect to a path with a login segment: the last one, or one that the request's own path lacks. Sites use these words for
    /// other pages too, as Django's admin in `/admin/auth/group/`.
    var pointsToLogin: Bool {
        guard let location else { return false }
        var path = location
        if case .sameOrigin(let target) = RedirectTarget(location, from: request) { path = target }
        let (segments, own) = (Self.segments(of: path), Self.segments(of: request.target))
        return segments.indices.contains { index in
            Self.loginSegments.contains(segments[index]) && (index == segments.count - 1 || !own.contains(segments[index]))
        }
    }

    private static let loginSegments: Set<String> = ["login", "log-in", "log_in", "signin", "sign-in", "sign_in", "auth"]

    /// The segments of a target's path in lower case, without the extensions of files.
    private static func segments(of target: String) -> [String] {
        target.lowercased().prefix { $0 != "?" }.split(separator: "/").map { String($0.prefix { $0 != "." }) }
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
