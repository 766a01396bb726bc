// The key of a cache entry: delimited parts, so that two different requests never share one text (RFC 9111 §2, docs/caching.md#cache-key
// *Keys*).
package import HTTPTypes

/// The key of a set of variants. The target holds the exact bytes sent upstream: nothing is sorted, dropped or decoded.
package struct CacheKey: Hashable, Sendable {
    /// `method LF origin LF target LF identity LF body`; no part can contain a line feed.
    package let text: String

    /// - Parameters:
    ///   - method: HEAD uses the key of GET.
    ///   - identity: The partition's name, empty for the shared one.
    ///   - body: A digest of the request's body on routes that cache by body; else empty.
    package init(method: String, origin: OriginAddress, target: String, identity: String = "", body: String = "") {
        self.init(method: method, at: Place(origin: origin, target: target), identity: identity, body: body)
    }

    /// The key of a request at a place, in one partition.
    package init(method: String, at place: Place, identity: String = "", body: String = "") {
        var text = method == "HEAD" ? "GET" : Self.escaped(method)
        text.reserveCapacity(text.utf8.count + place.text.utf8.count + identity.utf8.count + body.utf8.count + 1)
        text += place.text
        if !identity.isEmpty { text += Self.escaped(identity) }
        text += "\n"
        if !body.isEmpty { text += Self.escaped(body) }
        self.text = text
    }

    /// The key of a request in one partition.
    package init(_ request: RequestHead, identity: String = "", body: String = "") {
        self.init(method: request.method.rawValue, origin: request.origin, target: request.target, identity: identity, body: body)
    }

    /// The same request's key in another partition.
    package init(_ key: CacheKey, in partition: StoragePartition) {
        text = [key.part(0), key.part(1), key.part(2), partition.name, key.part(4)].joined(separator: "\n")
    }

    /// The key under which the head of a response to HEAD is stored where nothing of the response to GET is.
    package var ofHead: CacheKey { CacheKey(checked: "HEAD" + text[(text.firstIndex(of: "\n") ?? text.endIndex)...]) }

    private init(checked text: String) { self.text = text }

    /// Restores a key from its text.
    package init?(text: String) {
        guard text.utf8.count(where: { $0 == 0x0A }) == 4 else { return nil }
        self.text = text
    }

    /// The absolute URI.
    package var url: String { part(1) + part(2) }
    package var method: String { part(0) }
    /// True if a head without its content is stored under the key.
    package var isOfHead: Bool { text.utf8.starts(with: "HEAD\n".utf8) }
    /// True for the key of a response to GET or HEAD.
    package var isOfGet: Bool { text.utf8.starts(with: "GET\n".utf8) || isOfHead }
    /// Path and query.
    package var target: String { part(2) }
    /// The partition's name; empty for the shared one.
    package var identity: String { part(3) }

    /// All parts with their names, in the order of the text.
    package var parts: [(name: String, value: String)] {
        ["method", "origin", "target", "identity", "body"].enumerated().map { ($1, part($0)) }
    }

    /// The partition that holds the entry.
    package var partition: StoragePartition { identity.isEmpty ? .shared : .identity(identity) }

    private func part(_ index: Int) -> String {
        var start = text.utf8.startIndex
        for _ in 0..<index {
            guard let end = text.utf8[start...].firstIndex(of: 0x0A) else { return "" }
            start = text.utf8.index(after: end)
        }
        return String(text[start..<(text.utf8[start...].firstIndex(of: 0x0A) ?? text.utf8.endIndex)])
    }

    /// Line feeds are rejected much earlier; if one gets here, it still must not end its part.
    fileprivate static func escaped(_ part: String) -> String {
        guard part.utf8.contains(0x0A) else { return part }
        return part.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).map { String(Substring($0)) }.joined(separator: "%0A")
    }

    /// The parts of a key that the requests at one URL have in common.
    package struct Place: Hashable, Sendable {
        /// `LF origin LF target LF`.
        fileprivate let text: String

        package init(origin: OriginAddress, target: String) {
            let url = origin.url
            var text = "\n"
            text.reserveCapacity(url.utf8.count + target.utf8.count + 3)
            text += CacheKey.escaped(url)
            text += "\n"
            text += CacheKey.escaped(target)
            text += "\n"
            self.text = text
        }
    }
}

/// A partition of the cache (docs/caching.md#partitions *Identity*, docs/security-model.md#partitions). Entries are never read across
/// partitions, not even offline.
package enum StoragePartition: Hashable, Sendable {
    /// Readable by every client.
    case shared
    /// Belongs to the identity of this name; never empty.
    case identity(String)

    /// Holds private responses received without a credential, on upstreams configured to store them.
    package static let anonymous = StoragePartition.identity("anonymous")
    /// Belongs to the only user, on upstreams with `identity: single`: a private cache (RFC 9111 §1), whatever the credential. It is
    /// separate from the shared partition, whose entries would become readable by every client after a configuration change.
    package static let single = StoragePartition.identity("single")

    /// Holds responses of registries for all clients that they admit, and the admitted clients. It is read only for an admitted client.
    package static let registry = StoragePartition.identity("registry")

    /// Partitions that can be filled without a credential.
    package static let nobodys: [StoragePartition] = [.shared, .anonymous, .single, .registry]

    /// The name in a cache key; empty for the shared one.
    package var name: String {
        switch self {
        case .shared: ""
        case .identity(let name): name
        }
    }

    /// The partition of a request's own responses.
    /// - Parameter identity: Nil without credentials; empty if the upstream's `identity: single` disables partitions.
    package static func own(_ identity: String?) -> StoragePartition {
        switch identity {
        case nil: .anonymous
        case "": .single
        case .some(let identity): .identity(identity)
        }
    }

    /// The partitions a request may be served from, its own first.
    package static func readable(by identity: String?) -> [StoragePartition] { [own(identity), .shared] }
}

/// The part of a cache key that represents a request's content (RFC 10008 §2.7; docs/reference/configuration.md#routes).
package enum BodyKey {
    /// A body is buffered whole before anything is sent, so that the key is known; larger bodies are forwarded and not cached.
    package static let maxBody = ByteCount.kib(64)

    /// The reason why a request is not cached by its body.
    package enum Obstacle: String, CaseIterable, Sendable, Codable {
        /// Neither QUERY nor, on a route with `cache: body` or `read: true`, POST or a safe method that asks by its body.
        case method
        case tooLarge = "too-large"
    }

    /// Methods that a route may declare to be reads by their body: POST, and the safe ones that may have one (RFC 9110 §9.3, RFC 4918,
    /// RFC 3253, RFC 5323).
    package static let declarable: Set<String> = ["POST", "GET", "OPTIONS", "QUERY", "PROPFIND", "REPORT", "SEARCH"]

    /// The obstacle to caching `request` by its body; nil without one. QUERY is always cached by its body, because the method is safe by
    /// definition; others only where the route declares them reads. No route can change the semantics of a method that is not declarable.
    /// - Parameters:
    ///   - isDeclared: True if the route says that its requests are keyed by their body.
    ///   - length: Bytes of the body; of one without an announced length, what it may have.
    package static func obstacle(_ method: HTTPRequest.Method, isDeclared: Bool, length: Int64) -> Obstacle? {
        guard method.rawValue == "QUERY" || (isDeclared && declarable.contains(method.rawValue)) else { return .method }
        // Without a body it is an ordinary GET.
        if method == .get, length == 0 { return .method }
        return length > maxBody.bytes ? .tooLarge : nil
    }

    /// The digest's input before the body's own bytes: the metadata that defines how the body is interpreted (RFC 9110 §8). Each part is
    /// preceded by its length, so that two different requests never share one text. The digest's hex form is `CacheKey`'s `body`.
    package static func preamble(_ fields: HTTPFields, bodyLength: Int) -> [UInt8] {
        var text = ""
        // `Depth` and `Brief` select what PROPFIND and REPORT answer (RFC 4918 §10.2).
        for name in ["content-type", "content-encoding", "content-language", "content-location", "depth", "brief"] {
            guard let value = fields.value(of: name).map({ normalized($0, of: name) }) else { continue }
            text += "\(name.utf8.count):\(name)\(value.utf8.count):\(value)"
        }
        return Array("\(text)\(bodyLength):".utf8)
    }

    private static func normalized(_ value: String, of name: String) -> String {
        switch name {
        case "content-type": contentType(of: value)
        case "content-encoding", "content-language": FieldList.members(of: value.lowercased()).joined(separator: ", ")
        default: String(FieldList.trimmed(value[...]))
        }
    }

    /// The media type with type and parameter names in lower case, the value of `charset` in lower case too, and no unnecessary quotes
    /// (RFC 9110 §8.3.1, §5.6.6). A value with a separator or an escape within quotes keeps its parameters unchanged.
    private static func contentType(of value: String) -> String {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false).map { FieldList.trimmed($0) }
        let essence = parts.first?.lowercased() ?? ""
        guard parts.dropFirst().allSatisfy({ part in part.utf8.count { $0 == FieldByte.quote } % 2 == 0 && !part.contains("\\") }) else {
            return essence + FieldList.trimmed(value.drop { $0 != ";" })
        }
        return ([essence] + parts.dropFirst().filter { !$0.isEmpty }.map(parameter)).joined(separator: ";")
    }

    private static func parameter(in text: Substring) -> String {
        guard let equals = text.firstIndex(of: "=") else { return text.lowercased() }
        let name = text[..<equals].lowercased()
        var value = text[text.index(after: equals)...]
        let inner = value.dropFirst().dropLast()
        if value.utf8.first == FieldByte.quote, !inner.isEmpty, inner.utf8.allSatisfy(FieldByte.isTokenByte) { value = inner }
        return "\(name)=\(name == "charset" ? value.lowercased() : String(value))"
    }
}

/// Cookies of analytics, advertising, load balancers and bot detection. They name a visit, a server or a browser, and many have a new value in
/// each request: neither the identity of a request nor the variant that it selects depends on them.
package enum CookieCrumbs {
    private static let names: Set<Substring> = [
        // Google Analytics, before and after 2020.
        "_ga", "_gid", "_gat", "__utma", "__utmb", "__utmc", "__utmt", "__utmv", "__utmx", "__utmxx", "__utmz",
        // Meta, Microsoft, HubSpot, TikTok, Pinterest, LinkedIn.
        "_fbp", "_fbc", "_clck", "_clsk", "_uetsid", "_uetvid", "__hstc", "__hssc", "__hssrc", "hubspotutk", "_ttp", "_pin_unauth", "li_gc",
        // Load balancers of Amazon Web Services.
        "AWSALB", "AWSALBCORS", "AWSELB", "AWSELBCORS",
        // Bot detection of Cloudflare, Akamai, Imperva and DataDome.
        "__cf_bm", "_cfuvid", "_abck", "ak_bmsc", "bm_mi", "bm_sv", "bm_sz", "datadome",
    ]

    /// Google Analytics and its advertising, Matomo, Hotjar, Amazon Web Services, Imperva, Amplitude.
    private static let prefixes = [
        "_ga_", "_gat_", "_gac_", "_gcl_", "_dc_gtm_", "_pk_", "_hj", "AWSALBTG", "incap_ses_", "visid_incap_", "nlbi_", "AMP_",
    ]

    /// Returns the value of a `Cookie` field without these cookies: unchanged if there are none, empty if there are no others.
    package static func removed(from value: String) -> String {
        let pairs = value.split(separator: ";").map { FieldList.trimmed($0) }
        let kept = pairs.filter { !isOne($0.prefix { $0 != "=" }) }
        return kept.count == pairs.count ? value : kept.joined(separator: "; ")
    }

    /// True if a cookie of this name is one.
    static func isOne(_ name: Substring) -> Bool { names.contains(name) || prefixes.contains { name.hasPrefix($0) } }
}
