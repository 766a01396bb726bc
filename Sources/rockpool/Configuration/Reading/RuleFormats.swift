// Values that select requests and members of bodies: route patterns, templates, JSON Pointers, field strategies
// (docs/reference/configuration.md#routes).
import RockpoolCore

extension ScalarFormat where Value == String {
    /// `METHOD /pattern` or `/pattern`.
    static let routePattern = text("a pattern such as \"GET /v1/notes/*\"") { text in
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard let pattern = words.last, words.count <= 2, pattern.hasPrefix("/") || pattern == "**" else { return false }
        return words.count == 1 || isMethod(String(words[0]))
    }

    private static let usualMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

    /// False also for a usual method that is mistyped, as `GTE`; any other token may be an origin's own.
    private static func isMethod(_ text: String) -> Bool {
        guard text.isToken, text == text.uppercased() else { return false }
        return usualMethods.allSatisfy { text == $0 || Nearest.distance(from: text, to: $0) > 1 }
    }

    /// The type of a body, with or without parameters.
    static let mediaType = text("a media type such as text/plain") { text in
        let parts = text.prefix { $0 != ";" }.split(separator: "/", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && !$0.contains(" ") } && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }

    /// A path of the upstream.
    static let urlPath = text("a path such as /v1/notes") { $0.hasPrefix("/") && !$0.contains(" ") && !$0.contains("#") }

    /// The token endpoint: a path of the upstream itself, or an https URL elsewhere.
    static let tokenEndpoint = text("a path such as /v1/token or an https URL") { text in
        if text.hasPrefix("https://") { return RefreshRecipe(path: text).head(origin: OriginAddress(scheme: .https, host: "")) != nil }
        return text.hasPrefix("/") && !text.contains(" ") && !text.contains("#")
    }

    /// RFC 6749 appendix A.1, without the space.
    static let clientID = text("a client id") { text in !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } }

    /// The path of a collection, empty for none.
    static let collectionPath = text("a path such as /v1/notes or /projects/{project}/tasks") {
        $0.isEmpty || isTemplate($0) && !$0.contains("?")
    }

    /// The path of one entity: `{id}` stands for its id.
    static let itemPath = text("a path such as /v1/notes/{id}, /Products({id}) or /me") { text in
        isTemplate(text) && (!text.contains("?") || PathTemplate(text).namesRow)
    }

    private static func isName(_ text: String) -> Bool {
        !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" || $0 == ".") }
    }

    /// True for a path whose variables have a name each, all different, and are told apart by what stands between them.
    private static func isTemplate(_ text: String) -> Bool {
        let names = PathTemplate(text).variables
        let bare = names.reduce(text) { $0.replacing("{\($1)}", with: "") }
        return text.hasPrefix("/") && !text.contains(" ") && !text.contains("#") && !text.contains("}{") && Set(names).count == names.count
            && names.allSatisfy(isName) && !bare.contains("{") && !bare.contains("}")
    }

    /// A JSON Pointer (RFC 6901); an empty one is the whole document.
    static let pointer = text("a JSON Pointer such as /id") { $0.isEmpty || $0.isPointer }

    /// A document of JSON with places for values.
    static let template = text("a text of JSON") { JSONTemplate($0) != nil }

    /// The name of a query parameter as URLs have it.
    static let parameterName = text("the name of a query parameter") { !$0.isEmpty && !$0.contains { "?&=#% ".contains($0) } }

    /// A JSON Pointer to a member.
    static let memberPointer = text("a JSON Pointer to a member such as /_sync") { $0.isPointer }

    /// `etag`, or a JSON Pointer to a version.
    static let version = text("etag or a JSON Pointer such as /version") { $0 == "etag" || $0.isPointer }

    /// The query of a delta request.
    static let deltaQuery = text("a query with {cursor}, such as updatedAfter={cursor}") {
        $0.contains("{cursor}") && !$0.contains(" ") && !$0.contains("#")
    }

    /// The path and query of a since-pull.
    static let pullTarget = text("a path whose query has {cursor}, such as /v1/sync/pull?since={cursor}") { text in
        text.hasPrefix("/") && !text.contains(" ") && !text.contains("#") && !text.prefix { $0 != "?" }.contains("{")
            && text.contains("{cursor}")
    }

    /// The merge strategy of one field.
    static let fieldStrategy = words(
        ["server", "client", "lww", "max", "min", "set", "counter", "flag", "text3", "ask"], orPrefixed: "keyed:")

    /// A name that is valid in lists, metrics and variables.
    static let name = text("a name of letters, digits, \"-\", \"_\" and \".\"") { $0.isName }

    /// The name of a site.
    static let siteName = text("a name of letters, digits, \"-\", \"_\" and \".\", which is not the first") { SiteName.isValid($0) }
}

extension String {
    /// True if this is a token (RFC 9110 §5.6.2).
    var isToken: Bool {
        !isEmpty
            && utf8.allSatisfy { byte in
                (65...90).contains(byte) || (97...122).contains(byte) || (48...57).contains(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
    }

    /// True if this can name an upstream or a category: at most 64 letters, digits, `-`, `_` and `.`.
    var isName: Bool { isToken && utf8.count <= 64 && utf8.allSatisfy { !"!#$%&'*+^`|~".utf8.contains($0) } }

    /// True if this is a JSON Pointer to a member (RFC 6901 §3): every `~` is followed by 0 or 1.
    fileprivate var isPointer: Bool {
        hasPrefix("/")
            && split(separator: "~", omittingEmptySubsequences: false).dropFirst().allSatisfy { $0.first == "0" || $0.first == "1" }
    }
}

extension ScalarFormat where Value == JSONValue {
    /// A JSON scalar; any other text is a string.
    static let jsonScalar = ScalarFormat(
        "a JSON string, number or boolean", schema: .map([]), show: { $0.scalarDocument }
    ) { text in
        guard let value = try? JSONValue.parse(Array(text.utf8)) else { return .string(text) }
        return value.array == nil && value.object == nil && !value.isNull ? value : nil
    }
}

extension JSONValue {
    fileprivate var scalarDocument: ConfigDocument {
        switch self {
        case .bool(let value): .bool(value)
        case .string(let text):
            .text((try? JSONValue.parse(Array(text.utf8))) == nil ? text : String(decoding: serialized(), as: UTF8.self))
        default: integer.map { .int(Int($0)) } ?? .text(String(decoding: serialized(), as: UTF8.self))
        }
    }
}

extension ScalarFormat where Value == SearchVariance {
    /// The queries that are equivalent, in the syntax of No-Vary-Search.
    static let searchVariance = ScalarFormat(
        "a No-Vary-Search value such as key-order, params=(\"utm_source\")", show: { .text($0.fieldValue) }
    ) { SearchVariance(fieldValue: $0) }
}
