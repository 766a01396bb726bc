// Heads used by decisions: a request already resolved to an origin, and a response; and what methods and status codes mean (RFC 9110 §6,
// §9.2, §15.1).
package import HTTPTypes

/// The head of a request after its target was resolved (RFC 9110 §7.1).
package struct RequestHead: Hashable, Sendable {
    package var method: HTTPRequest.Method
    package var origin: OriginAddress
    /// Path and query, the exact bytes sent upstream; `*` for OPTIONS of the whole server.
    package var target: String
    /// End-to-end fields, without hop-by-hop fields.
    package var fields: HTTPFields

    package init(method: HTTPRequest.Method, origin: OriginAddress, target: String, fields: HTTPFields = [:]) {
        self.method = method
        self.origin = origin
        self.target = target
        self.fields = fields
    }

    /// The absolute URI, as displayed and stored in the index.
    package var url: String { origin.url + target }
    /// The absolute URI without the query, the key of rules about queries.
    package var urlWithoutQuery: String { origin.url + path }
    /// The target without its query.
    package var path: String { String(target.prefix { $0 != "?" }) }
    /// The query; nil for a target without one.
    var query: Substring? {
        target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target[target.utf8.index(after: $0)...] }
    }
}

/// Creates a request for a URL given by a user or a file instead of a client's message (RFC 9110 §4.2, RFC 3986 §4.3).
extension RequestHead {
    /// A request for an absolute `http` or `https` URL. Host and default port are normalised as usual; path and query are unchanged.
    ///
    /// Throws a 400 that describes the error in the URL.
    package init(method: HTTPRequest.Method = .get, url: String, fields: HTTPFields = [:]) throws(Refusal) {
        guard method != .connect, case .absolute(let origin, let target) = try RequestTarget.parse(url, method: method.rawValue) else {
            throw .badRequest("not an absolute http or https URL")
        }
        self.init(method: method, origin: origin, target: target, fields: fields)
    }
}

/// The head of a response.
package struct ResponseHead: Hashable, Sendable {
    /// 100…599.
    package var status: Int
    package var fields: HTTPFields

    package init(status: Int, fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }

    /// True if the connection of an HTTP/1.1 response is not used again: whatever its `Connection` says but the usual (RFC 9112 §9.3).
    package var endsConnection: Bool { fields.value(of: "connection").map { $0.lowercased() != "keep-alive" } ?? false }
}

/// The safe methods (RFC 9110 §9.2.1).
extension HTTPRequest.Method {
    /// True if the method is registered as safe (RFC 9110 §9.2.1 and the IANA registry); an unknown method counts as unsafe.
    package var isSafe: Bool {
        switch rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH", "PRI": true
        default: false
        }
    }

    /// RFC 9110 §9.2.2: several identical requests have the effect of one. Of WebDAV's methods, MKCOL, COPY and MOVE are idempotent too: the
    /// answer to a repeated one may differ (405, 404), its effect does not.
    package var isIdempotent: Bool {
        switch self {
        case .put, .delete, .get, .head, .options, .trace: true
        default: ["MKCOL", "COPY", "MOVE"].contains(rawValue)
        }
    }
}

/// A request about stored responses (docs/reference/behaviour.md#purge).
package enum PurgeMethod: String, Sendable {
    /// Every variant of the URL, or everything with the tags in the request.
    case purge = "PURGE"
    /// Every URL that the pattern in the target matches.
    case ban = "BAN"

    package init?(_ request: RequestHead) { self.init(rawValue: request.method.rawValue) }
}

/// Classes of status codes that determine storing and reuse (RFC 9110 §15.1, RFC 9111 §3, docs/security-model.md#poisoned-errors).
package enum StatusCode {
    /// Heuristically cacheable: may be given a freshness lifetime when the response declares none (RFC 9110 §15.1).
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// True if this cache meets the status code's caching requirements, as `must-understand` demands (RFC 9111 §5.2.2.3): the final codes
    /// of RFC 9110 §15, except 304, 412 and 416.
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...206, 300...303, 305, 307, 308, 400...411, 413...415, 417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// Never stored: not final, an answer to a condition or a range, or about one client's credentials.
    static func isNeverStored(_ status: Int) -> Bool {
        switch status {
        case 200..<600: [304, 401, 407, 416].contains(status)
        default: true
        }
    }

    /// Stored only with explicit freshness: an error that an unusual request can provoke must not replace the resource.
    static func needsExplicitFreshness(_ status: Int) -> Bool {
        switch status {
        case 400, 403, 408, 413, 421, 425, 429, 431, 500, 502...599: true
        default: false
        }
    }

    /// Heuristically cacheable, but an unusual request can provoke it: stored by heuristics only with a `Last-Modified`.
    static func isProvocable(_ status: Int) -> Bool { status == 405 || status == 414 || status == 501 }

    /// An error that does not describe the resource: it may be transient, or be caused by another party.
    static func isPassingError(_ status: Int) -> Bool { status >= 400 && ![404, 410, 451].contains(status) }

    /// A response to HEAD that contradicts a stored 200: the resource has changed.
    static func contradictsOK(_ status: Int) -> Bool {
        switch status {
        case 203, 204, 300, 301, 308, 404, 410: true
        default: false
        }
    }

    /// Worth storing for offline use even if not reusable online.
    static func isKeptForOffline(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 207, 300, 301, 308, 404, 410: true
        default: false
        }
    }

    /// A redirect that says nothing of later requests (RFC 9110 §15.4).
    static func isTemporaryRedirect(_ status: Int) -> Bool { [302, 303, 307].contains(status) }

    /// The status codes after which a write may have taken effect all the same: a gateway may have lost its origin afterwards. An upstream
    /// that answers 501, 503 or 505 has not begun with it.
    package static func leavesEffectUnknown(_ status: Int) -> Bool { (500...599).contains(status) && ![501, 503, 505].contains(status) }

    /// The status codes of a failing upstream (RFC 5861 §4), and 520 to 529, with which content delivery networks report one.
    static func isServerError(_ status: Int) -> Bool {
        switch status {
        case 500, 502, 503, 504, 520...529: true
        default: false
        }
    }
}
