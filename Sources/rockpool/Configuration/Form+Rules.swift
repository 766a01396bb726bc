// Values that say which requests and which members of a body: route patterns, templates, JSON Pointers, field strategies (contract §2, §6).
import RockpoolCore

extension Form where Value == String {
    /// `METHOD /pattern` or `/pattern`.
    static let routePattern = text("a pattern such as \"GET /v1/notes/*\"") { text in
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard let pattern = words.last, words.count <= 2, pattern.hasPrefix("/") || pattern == "**" else { return false }
        return words.count == 1 || (String(words[0]).isToken && words[0] == words[0].uppercased())
    }

    /// A path of the upstream.
    static let urlPath = text("a path such as /v1/notes") { $0.hasPrefix("/") && !$0.contains(" ") && !$0.contains("#") }

    /// Where tokens are renewed: at the upstream itself, or elsewhere and then encrypted.
    static let tokenEndpoint = text("a path such as /v1/token or an https URL") { text in
        if text.hasPrefix("https://") { return RefreshRecipe(path: text).head(origin: OriginAddress(scheme: .https, host: "")) != nil }
        return text.hasPrefix("/") && !text.contains(" ") && !text.contains("#")
    }

    /// RFC 6749 appendix A.1, without the space.
    static let clientID = text("a client id") { text in !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } }

    /// The path of one entity: `{id}` stands for its id.
    static let itemPath = text("a path with {id}, such as /v1/notes/{id}") { text in
        text.hasPrefix("/") && !text.contains(" ") && text.split(separator: "{id}", omittingEmptySubsequences: false).count == 2
    }

    /// A JSON Pointer (RFC 6901); empty is the whole document.
    static let pointer = text("a JSON Pointer such as /id") { $0.isEmpty || $0.isPointer }

    /// `etag`, or a JSON Pointer to a version.
    static let version = text("etag or a JSON Pointer such as /version") { $0 == "etag" || $0.isPointer }

    /// Query of a delta request.
    static let deltaQuery = text("a query with {cursor}, such as updatedAfter={cursor}") {
        $0.contains("{cursor}") && !$0.contains(" ") && !$0.contains("#")
    }

    /// Path and query of a since-pull.
    static let pullTarget = text("a path whose query has {cursor}, such as /v1/sync/pull?since={cursor}") { text in
        text.hasPrefix("/") && !text.contains(" ") && !text.contains("#") && !text.prefix { $0 != "?" }.contains("{")
            && text.contains("{cursor}")
    }

    /// How one field is merged.
    static let fieldStrategy = words(
        ["server", "client", "lww", "max", "min", "set", "counter", "flag", "text3", "ask"], orPrefixed: "keyed:")

    /// A name that can stand in lists, metrics and variables.
    static let name = text("a name of letters, digits, \"-\", \"_\" and \".\"") { $0.isName }
}

extension String {
    /// Whether this is a token (RFC 9110 §5.6.2).
    var isToken: Bool {
        !isEmpty
            && utf8.allSatisfy { byte in
                (65...90).contains(byte) || (97...122).contains(byte) || (48...57).contains(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }

    /// Whether this can name an upstream or a category: at most 64 letters, digits, `-`, `_` and `.`.
    var isName: Bool { isToken && utf8.count <= 64 && utf8.allSatisfy { !"!#$%&'*+^`|~".utf8.contains($0) } }

    /// Whether this is a JSON Pointer to some member (RFC 6901 §3): every `~` is followed by 0 or 1.
    fileprivate var isPointer: Bool {
        hasPrefix("/")
            && split(separator: "~", omittingEmptySubsequences: false).dropFirst().allSatisfy { $0.first == "0" || $0.first == "1" }
    }
}

extension Form where Value == SearchVariance {
    /// Which queries mean the same, in the words of No-Vary-Search.
    static let searchVariance = Form(
        "a No-Vary-Search value such as key-order, params=(\"utm_source\")", show: { .text($0.fieldValue) }
    ) { SearchVariance(fieldValue: $0) }
}
