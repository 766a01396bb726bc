// The permissions that an upstream has given to the pages of one origin (Fetch, *CORS protocol*; docs/caching.md#pages-of-other-origins).
import HTTPTypes

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

// MARK: learning

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

// MARK: storing

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
