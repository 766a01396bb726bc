// What status codes mean to a cache (RFC 9110 §15.1, RFC 9111 §3, security.md §3).

/// Classes of status codes, as far as storing and reusing depend on them.
enum StatusCode {
    /// May be given freshness when the response names none (RFC 9110 §15.1).
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether this cache does what the status requires of one, as `must-understand` asks (RFC 9111 §5.2.2.3):
    /// the final codes of RFC 9110 §15, without those about conditions.
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

    /// Stored only with freshness of its own: what an odd request can provoke must not stand in for the resource.
    static func needsExplicitFreshness(_ status: Int) -> Bool {
        switch status {
        case 400, 403, 408, 413, 421, 425, 429, 431, 500, 502...599: true
        default: false
        }
    }

    /// Cacheable by heuristics, and yet what an odd request can provoke: stored by them only with something to guess by.
    static func isProvocable(_ status: Int) -> Bool { status == 405 || status == 414 || status == 501 }

    /// An error that is none of the resource's own: it may be over in a moment, or be another's fault.
    static func isPassingError(_ status: Int) -> Bool { status >= 400 && ![404, 410, 451].contains(status) }

    /// An answer to HEAD that says of the resource itself that it is no longer what a stored 200 shows.
    static func contradictsOK(_ status: Int) -> Bool {
        switch status {
        case 203, 204, 300, 301, 308, 404, 410: true
        default: false
        }
    }

    /// Worth keeping for offline use although nothing makes it reusable online.
    static func isKeptForOffline(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 410: true
        default: false
        }
    }

    /// What a failing upstream answers (RFC 5861 §4).
    static func isServerError(_ status: Int) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
