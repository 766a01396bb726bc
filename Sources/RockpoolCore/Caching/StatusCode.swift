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
    /// the final codes of RFC 9110 §15, without those about parts and conditions.
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...205, 300...303, 305, 307, 308, 400...411, 413...415, 417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// Never stored: not final, an answer to our own condition, a part, or about one client's credentials.
    static func isNeverStored(_ status: Int) -> Bool {
        switch status {
        case 200..<600: [206, 304, 401, 407, 416].contains(status)
        default: true
        }
    }

    /// Stored only with freshness of its own: what an odd request can provoke must not stand in for the resource.
    static func needsExplicitFreshness(_ status: Int) -> Bool {
        switch status {
        case 400, 403, 405, 408, 413, 414, 421, 425, 429, 431, 500...599: true
        default: false
        }
    }

    /// Worth keeping for offline use although nothing makes it reusable online.
    static func isKeptForOffline(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 410: true
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
