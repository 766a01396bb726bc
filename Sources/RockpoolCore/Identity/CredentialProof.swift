// Decides what an answer says about the credential of its request (docs/security-model.md#proof).
package import HTTPTypes

/// What an answer says about the credential of its request.
///
/// A token names its user itself, and so does Basic authentication. Whether the name is true only the upstream knows, and most of its answers
/// do not say so: a public page, a favicon and the answer to OPTIONS are the same for everybody, and so is a login, whatever credential comes
/// with it.
package enum CredentialVerdict: Hashable, Sendable {
    /// The answer depends on who asks, and the upstream has accepted the credential: it is what it claims to be.
    case proved(Proof)
    /// The request was carried out, as it may be for anyone: the credential may be sent again. It says nothing of whose it is.
    case accepted(Doubt)
    /// The request was refused, or has failed.
    case nothing

    /// How an answer shows that it depends on who asks.
    package enum Proof: String, Hashable, Sendable {
        /// The same request was refused with another credential, or without one.
        case refusesOthers = "refuses-others"
        /// The upstream says so: by `private`, `no-store`, or a `Vary` that names the field of the credential.
        case isPersonal = "personal"
    }

    /// Why an answer does not show who asks.
    package enum Doubt: String, Hashable, Sendable, CaseIterable {
        /// Others than reads of a representation: a body may say who asks (a login), and HEAD, OPTIONS and 304 bring nothing of their own.
        case method
        /// A read with a body, for the same reason.
        case body
        /// Every client may be given this answer.
        case shareable
        /// Nothing shows that the answer depends on who asks.
        case unmarked
        /// The place answers requests without a credential.
        case open
        /// The request has another credential besides, to which the answer may be due.
        case another
    }

    /// - Parameters:
    ///   - hasBody: true if the request has content.
    ///   - places: what answers have shown before of the places of this upstream.
    package init(_ answer: ResponseHead, to request: RequestHead, asking: AskingFields, hasBody: Bool, places: PlaceAccess) {
        self = Self.judged(answer, to: request, asking: asking, hasBody: hasBody, places: places)
    }

    private static func judged(
        _ answer: ResponseHead, to request: RequestHead, asking: AskingFields, hasBody: Bool, places: PlaceAccess
    ) -> CredentialVerdict {
        let isDone = (200...299).contains(answer.status)
        guard isDone || answer.status == 304 else { return .nothing }
        // It may come from a portal.
        if PortalSuspicion.isPage(answer, hasBody: true), !MediaType.isAskedForPages(request) { return .nothing }
        guard isDone, PlaceAccess.isRead(request) else { return .accepted(.method) }
        if request.method == .get, hasBody { return .accepted(.body) }
        let directives = CacheControl.governing(in: answer.fields).directives
        let isOwn = directives.isPrivate == .all || directives.noStore
        if !isOwn, Storability.isShareable(directives) { return .accepted(.shareable) }
        if places.isOpen(request) { return .accepted(.open) }
        if places.refusesOthers(than: asking, request) { return .proved(.refusesOthers) }
        guard isOwn || asking.isNamed(byVaryOf: answer) else { return .accepted(.unmarked) }
        return asking.isAlone ? .proved(.isPersonal) : .accepted(.another)
    }
}

/// The fields by which a request says who asks.
package struct AskingFields: Hashable, Sendable {
    /// The credential: `Authorization`, else all identifying fields together.
    package let credential: HTTPFields
    /// What may be a credential of its own besides: keys, and cookies long enough to be a session, beside `Authorization`.
    let others: HTTPFields
    private let isInQuery: Bool

    /// - Parameter named: the field by which the upstream's rule names clients: it counts where there is no other.
    package init(_ request: RequestHead, named: HTTPField.Name? = nil) {
        var all = HTTPFields()
        for field in request.fields where SecretFields.identifies(field.name) {
            guard field.name == .cookie else {
                all.append(field)
                continue
            }
            let cookies = CookieCrumbs.removed(from: field.value)
            if !cookies.isEmpty { all.append(HTTPField(name: .cookie, value: cookies)) }
        }
        if all.isEmpty, let named { all[named] = request.fields[named] }
        let isAuthorized = all.contains(.authorization)
        credential = isAuthorized ? HTTPFields(all.filter { $0.name == .authorization }) : all
        others = HTTPFields(all.filter { $0.name != .authorization && ($0.name != .cookie || Self.mayBeSession($0.value)) })
        isInQuery = Self.namesSecret(request.target)
    }

    /// True if the request says only once who asks.
    var isAlone: Bool { !isInQuery && (others.isEmpty || !credential.contains(.authorization)) }

    func isNamed(byVaryOf answer: ResponseHead) -> Bool {
        let names = answer.fields[values: .vary].flatMap { FieldList.members(of: $0) }
        return credential.contains { field in names.contains { FieldByte.equal($0.utf8, field.name.canonicalName.utf8) } }
    }

    /// The fewest characters of a value that only one browser has.
    private static let shortestSession = 16

    private static func mayBeSession(_ cookies: String) -> Bool {
        cookies.split(separator: ";").contains { pair in
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[1].count >= shortestSession else { return false }
            let name = parts[0].lowercased()
            return !name.contains("csrf") && !name.contains("xsrf")
        }
    }

    /// Parameters by which a URL is authorized (RFC 6750 §2.3, signed URLs, keys of APIs).
    private static let secretParameters: Set<String> = [
        "access_token", "token", "auth", "auth_token", "api_key", "apikey", "api-key", "key", "sig", "signature", "x-amz-signature",
        "x-goog-signature", "jwt", "session", "sid",
    ]

    private static func namesSecret(_ target: String) -> Bool {
        guard let query = target.firstIndex(of: "?") else { return false }
        return target[target.index(after: query)...].split(separator: "&").contains { pair in
            secretParameters.contains(pair.prefix { $0 != "=" }.lowercased())
        }
    }
}
