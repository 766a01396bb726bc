// The permissions that an upstream has given to the pages of one origin (Fetch, *CORS protocol*; docs/caching.md#pages-of-other-origins).
package import HTTPTypes

/// The permissions of one origin for one group of paths, as the upstream last gave them.
package struct CrossOriginGrant: Hashable, Sendable {
    /// The extent of `Access-Control-Allow-Origin`.
    package enum Standing: String, Sendable {
        /// The upstream answered without a permission for this origin.
        case refused
        /// `*`: every origin, without credentials.
        case any
        /// This origin by name.
        case named
    }

    package var standing: Standing
    /// True if the upstream allows cookies and HTTP authentication.
    package var allowsCredentials = false
    /// Methods named in answers to preflights; may contain `*`.
    package var methods: Set<String> = []
    /// Field names in lower case named in answers to preflights; may contain `*`.
    package var fields: Set<String> = []
    /// Response fields that the upstream exposes to pages, as it writes them.
    package var exposed: [String] = []

    package init(_ standing: Standing) { self.standing = standing }

    package var isAllowed: Bool { standing != .refused }

    /// Methods that need no preflight permission (Fetch, *CORS-safelisted method*).
    private static let safelisted: Set<String> = ["GET", "HEAD", "POST"]

    package func allows(method: String) -> Bool {
        isAllowed && (Self.safelisted.contains(method) || methods.contains(method) || methods.contains("*"))
    }

    /// True if the upstream has permitted everything that the preflight names. `*` does not include `Authorization`.
    package func allows(_ preflight: CrossOriginRequest.Preflight) -> Bool {
        allows(method: preflight.method)
            && preflight.fields.allSatisfy { fields.contains($0) || ($0 != "authorization" && fields.contains("*")) }
    }
}

// MARK: - Learning

extension CrossOriginGrant {
    /// Maximum number of remembered methods, fields or exposed fields; further ones are dropped.
    private static let memberLimit = 64

    /// The grant after `response`, an answer of the upstream itself to `request`. Nil if the response shows nothing about permissions,
    /// as an error of a server in front of the API.
    package static func learned(
        from response: ResponseHead, to request: CrossOriginRequest, before: CrossOriginGrant?
    ) -> CrossOriginGrant? {
        guard let standing = standing(in: response.fields, for: request.origin) else {
            return isRefusal(response.status, toPreflight: request.preflight != nil) ? CrossOriginGrant(.refused) : nil
        }
        var grant = before.flatMap { $0.standing == standing ? $0 : nil } ?? CrossOriginGrant(standing)
        grant.allowsCredentials = standing == .named && response.fields[.accessControlAllowCredentials] == "true"
        guard let preflight = request.preflight else {
            grant.exposed = Array(response.fields.listed(.accessControlExposeHeaders).prefix(memberLimit))
            return grant
        }
        guard (200...299).contains(response.status) else { return before }
        grant.methods = merged(grant.methods, asked: [preflight.method], listed: response.fields.listed(.accessControlAllowMethods))
        grant.fields = merged(
            grant.fields, asked: Set(preflight.fields), listed: response.fields.listed(.accessControlAllowHeaders).map { $0.lowercased() })
        return grant
    }

    private static func standing(in fields: HTTPFields, for origin: String) -> Standing? {
        switch fields.single(.accessControlAllowOrigin) {
        case "*": .any
        case origin: .named
        default: nil
        }
    }

    /// A preflight is refused by any final answer without permission; a request itself only by a success.
    private static func isRefusal(_ status: Int, toPreflight isPreflight: Bool) -> Bool {
        (200...299).contains(status) || (isPreflight && (400...499).contains(status) && ![401, 407, 408, 421, 425, 429].contains(status))
    }

    /// An answer that names only what the preflight asks adds to what is known; any other answer replaces it.
    private static func merged(_ known: Set<String>, asked wanted: Set<String>, listed: [String]) -> Set<String> {
        let listed = Set(listed.prefix(memberLimit))
        guard listed.isSubset(of: wanted) else { return listed }
        let merged = known.subtracting(wanted).union(listed)
        return merged.count > memberLimit ? listed : merged
    }
}

// MARK: - Storing

extension CrossOriginGrant {
    /// The form in which the cache stores it: one line for each property.
    package var text: String {
        [
            standing.rawValue, allowsCredentials ? "credentials" : "", methods.sorted().joined(separator: ","),
            fields.sorted().joined(separator: ","), exposed.joined(separator: ","),
        ].joined(separator: "\n")
    }

    /// Nil if `text` is not of the form that `text` gives.
    package init?(text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 5, let standing = Standing(rawValue: String(lines[0])) else { return nil }
        self.init(standing)
        let members = { (line: Substring) in line.split(separator: ",").map(String.init) }
        allowsCredentials = lines[1] == "credentials"
        (methods, fields, exposed) = (Set(members(lines[2])), Set(members(lines[3])), members(lines[4]))
    }
}

/// A request that a browser has marked with the origin of its page.
package struct CrossOriginRequest: Hashable, Sendable {
    /// The request for which a preflight asks permission.
    package struct Preflight: Hashable, Sendable {
        package var method: String
        /// Names of the fields beyond the safelisted ones, in lower case.
        package var fields: [String]
        /// True if the page is of a less private network than the server (Private Network Access).
        package var namesPrivateNetwork: Bool
    }

    /// The value of `Origin`: `scheme://authority`, or `null`.
    package let origin: String
    /// Nil unless the request is a preflight.
    package let preflight: Preflight?

    /// Maximum length in bytes of an origin that is remembered.
    static let originLimit = 300

    /// Nil if the request has no `Origin`, more than one, or one of more than 300 bytes.
    package init?(_ request: RequestHead) {
        guard let origin = request.fields.single(.origin), !origin.isEmpty, origin.utf8.count <= Self.originLimit,
            !origin.utf8.contains(where: { $0 <= 0x20 })
        else { return nil }
        self.origin = origin
        guard request.isPreflight, let method = request.fields[.accessControlRequestMethod] else {
            preflight = nil
            return
        }
        preflight = Preflight(
            method: method, fields: request.fields.listed(.accessControlRequestHeaders).map { $0.lowercased() },
            namesPrivateNetwork: request.fields[.accessControlRequestPrivateNetwork] == "true")
    }
}

extension RequestHead {
    /// True for the request by which a browser asks for the permission of another one (Fetch §3.3.2).
    package var isPreflight: Bool { method == .options && fields.contains(.accessControlRequestMethod) }
}

extension HTTPFields {
    /// The members of all lines of a list-based field.
    func listed(_ name: HTTPField.Name) -> [String] { self[values: name].flatMap { FieldList.members(of: $0).map(String.init) } }
}

// MARK: - Replies

/// Writes the upstream's remembered permissions into replies.
package enum CrossOriginReply {
    /// Fields of Rockpool's own replies that pages may read.
    static let exposed = [
        "Location", "Content-Location", "ETag", "Link", "Retry-After", "Cache-Status", "Proxy-Status", "Preference-Applied",
        "Rockpool-Operation", "Rockpool-State", "Rockpool-Local-Id", "Rockpool-Pending", "Rockpool-Dirty", "Rockpool-Listed",
        "Rockpool-Seen", "Rockpool-Sync",
    ]

    private static let written: [HTTPField.Name] = [
        .accessControlAllowOrigin, .accessControlAllowCredentials, .accessControlExposeHeaders, .accessControlAllowMethods,
        .accessControlAllowHeaders, .accessControlMaxAge, .accessControlAllowPrivateNetwork,
    ]

    /// Adds the permissions of `origin` to a reply that Rockpool has made or taken from the store. Without a grant, a stored reply keeps the
    /// permissions that the upstream gave with it.
    package static func permit(_ origin: String, by grant: CrossOriginGrant?, in fields: inout HTTPFields) {
        addVary(&fields)
        var names = fields.listed(.accessControlExposeHeaders)
        if let grant {
            for name in written { fields[name] = nil }
            guard grant.isAllowed else { return }
            allow(origin, by: grant, in: &fields)
            names = grant.exposed + names
        }
        guard let allowed = fields.single(.accessControlAllowOrigin), allowed == "*" || allowed == origin else { return }
        var seen: Set<String> = []
        let all = (names + exposed).filter { seen.insert($0.lowercased()).inserted }
        fields[.accessControlExposeHeaders] = all.joined(separator: ", ")
    }

    /// The answer to a preflight while the upstream is away; nil if the upstream has not permitted everything that it names.
    package static func preflight(_ request: CrossOriginRequest, by grant: CrossOriginGrant?) -> ResponseHead? {
        guard let grant, let preflight = request.preflight, grant.allows(preflight) else { return nil }
        var head = ResponseHead(status: 204, fields: [.cacheControl: "no-store"])
        addVary(&head.fields)
        allow(request.origin, by: grant, in: &head.fields)
        let methods = grant.methods.union([preflight.method]).sorted()
        head.fields[.accessControlAllowMethods] = methods.joined(separator: ", ")
        if !grant.fields.isEmpty { head.fields[.accessControlAllowHeaders] = grant.fields.sorted().joined(separator: ", ") }
        if preflight.namesPrivateNetwork { head.fields[.accessControlAllowPrivateNetwork] = "true" }
        return head
    }

    /// Completes the upstream's own answer to a preflight: the upstream cannot know that Rockpool stands in a private network.
    package static func addPrivateNetwork(to fields: inout HTTPFields, for request: CrossOriginRequest) {
        guard request.preflight?.namesPrivateNetwork == true, let allowed = fields.single(.accessControlAllowOrigin),
            allowed == "*" || allowed == request.origin
        else { return }
        fields[.accessControlAllowPrivateNetwork] = "true"
    }

    private static func allow(_ origin: String, by grant: CrossOriginGrant, in fields: inout HTTPFields) {
        fields[.accessControlAllowOrigin] = grant.standing == .any ? "*" : origin
        if grant.allowsCredentials { fields[.accessControlAllowCredentials] = "true" }
    }

    private static func addVary(_ fields: inout HTTPFields) {
        let names = fields.listed(.vary)
        guard !names.contains(where: { $0 == "*" || $0.lowercased() == "origin" }) else { return }
        fields.append(HTTPField(name: .vary, value: "Origin"))
    }
}

/// Decides whether a write of a page may wait in the outbox (docs/security-model.md#writes-of-other-sites). While the upstream is reachable
/// it decides itself.
package enum CrossSiteWrite {
    /// The reason why the write must not be queued; nil if it may.
    ///
    /// - Parameters:
    ///   - grant: The permissions of the page's origin.
    ///   - isOwnPage: Returns true for an origin under which the upstream's own pages are seen.
    package static func obstacle(
        to request: RequestHead, grant: CrossOriginGrant?, isOwnPage: (String) -> Bool
    ) -> String? {
        let site = request.fields[.secFetchSite]?.lowercased()
        if site == "same-origin" || site == "none" { return nil }
        guard request.fields.contains(.origin) else {
            return site == "cross-site" ? "a page of another site sent it without the API's permission" : nil
        }
        guard let origin = request.fields.single(.origin) else { return "it names more than one origin" }
        if isOwnPage(origin) { return nil }
        guard let grant, grant.isAllowed else { return "the API has not allowed pages of \(shown(origin)) (CORS)" }
        guard grant.allows(method: request.method.rawValue) else {
            return "the API has not allowed \(request.method.rawValue) to pages of \(shown(origin)) (CORS)"
        }
        guard grant.allowsCredentials || !request.fields.contains(.cookie) else {
            return "the API has not allowed pages of \(shown(origin)) to send cookies (CORS)"
        }
        return nil
    }

    private static func shown(_ origin: String) -> String { String(origin.prefix(CrossOriginRequest.originLimit)) }
}
