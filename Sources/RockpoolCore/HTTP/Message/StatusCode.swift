// Properties of status codes relevant to a cache (RFC 9110 §15.1, RFC 9111 §3, docs/security-model.md#poisoned-errors).

/// Classes of status codes that determine storing and reuse.
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
