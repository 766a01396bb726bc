// CORS fields of replies that Rockpool makes in the upstream's place (Fetch, *CORS protocol*; docs/caching.md#pages-of-other-origins).
package import HTTPTypes

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
