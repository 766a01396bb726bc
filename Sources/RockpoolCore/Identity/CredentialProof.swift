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

/// The answers to one read with and without the credential, and what is to be asked next.
///
/// An earlier refusal, or a field such as `private`, may have other reasons than who asks: a firewall, a limit, a framework that marks every
/// page. What differs with the credential, and with it alone, does not.
package struct CredentialComparison: Sendable {
    /// What of an answer is compared.
    package struct Answer: Hashable, Sendable {
        private let status: Int
        private let digest: Int?

        /// A limit on the rate of requests says nothing of who asks.
        private let isLimit: Bool

        /// - Parameter digest: of the whole body; nil if that was not read.
        package init(_ head: ResponseHead, digest: Int?) {
            (status, self.digest, isLimit) = (head.status, digest, head.fields.contains(.retryAfter))
        }

        fileprivate var isDone: Bool { (200...299).contains(status) }
        fileprivate var isRead: Bool { isDone && digest != nil }
        fileprivate var isRefusal: Bool { (status == 401 || status == 403) && !isLimit }
    }

    package enum Step: Hashable, Sendable {
        case ask(withCredential: Bool)
        case ended(Ending)
    }

    package enum Ending: Hashable, Sendable {
        /// The upstream has looked at the credential.
        case proved
        /// The place answers everybody alike.
        case open
        /// The answers say nothing.
        case unclear
    }

    private var answers: [Answer] = []

    package init() {}

    /// What is asked first.
    package static let first = Step.ask(withCredential: false)

    /// Takes the answer to what was asked last. Without a refusal, the place must answer twice alike without the credential, before and after
    /// the other answer with it: a page that differs each time is no evidence.
    package mutating func take(_ answer: Answer) -> Step {
        answers.append(answer)
        switch answers.count {
        case 1: return answer.isRead || answer.isRefusal ? .ask(withCredential: true) : .ended(.unclear)
        case 2:
            guard answer.isDone else { return .ended(.unclear) }
            if answers[0].isRefusal { return .ended(.proved) }
            guard answer.isRead else { return .ended(.unclear) }
            return answer == answers[0] ? .ended(.open) : .ask(withCredential: false)
        default: return .ended(answer == answers[0] ? .proved : .unclear)
        }
    }

    /// The read that is sent for a comparison: the same one, but for what belongs to one request alone, and without `Authorization`, unless
    /// `withCredential`. All else that may say who asks stays.
    package static func question(like request: RequestHead, withCredential: Bool) -> RequestHead {
        var question = request
        question.fields = HTTPFields()
        for field in request.fields where !ofOneRequest(field.name) && (withCredential || field.name != .authorization) {
            question.fields.append(field)
        }
        if request.method != .get {
            question.method = HTTPRequest.Method("PROPFIND") ?? .get
            question.fields[.depth] = "0"
        }
        return question
    }

    private static func ofOneRequest(_ name: HTTPField.Name) -> Bool {
        ["if-", "content-", "rockpool-"].contains { name.canonicalName.hasPrefix($0) }
            || ["range", "cache-control", "pragma", "prefer", "expect", "te", "upgrade", "connection"].contains(name.canonicalName)
    }
}

/// The places that refuse some clients, and those that answer clients without a credential: the latest of each, by digests. A place that was
/// forgotten proves less than before, never more.
package struct PlaceAccess: Sendable {
    /// The most digests of a kind in each of two generations.
    private static let digestCount = 4096

    private struct Generation {
        /// Places that answer requests without a credential.
        var open: Set<Int> = []
        /// Requests that were refused, without their credential, and the digest of that.
        var refused: [Int: Int] = [:]
    }

    private var (now, before) = (Generation(), Generation())

    package init() {}

    /// True for a method whose answer is a representation that may be one user's.
    static func isRead(_ request: RequestHead) -> Bool {
        request.method == .get || request.method.rawValue == "PROPFIND" || request.method.rawValue == "REPORT"
    }

    /// Notes what an answer shows: a refusal of a credential or of its absence, or an answer to a request without one.
    package mutating func note(_ answer: ResponseHead, to request: RequestHead, asking: AskingFields) {
        guard Self.isRead(request) else { return }
        if asking.credential.isEmpty, (200...299).contains(answer.status) { return open(Self.place(of: request)) }
        // A limit on the rate of requests says nothing of who asks.
        guard answer.status == 401 || answer.status == 403, !answer.fields.contains(.retryAfter) else { return }
        if asking.credential.isEmpty {
            now.open.remove(Self.place(of: request))
            before.open.remove(Self.place(of: request))
        }
        if now.refused.count >= Self.digestCount { turn() }
        let refused = Self.digest(of: asking.credential)
        now.refused[Self.digest(of: request, beside: asking.besides)] = refused
        // A request without `Authorization` is the same one without it, and without its other credentials.
        if !asking.credential.contains(.authorization), !asking.others.isEmpty {
            now.refused[Self.digest(of: request, beside: asking.others)] = Self.digest(of: [:])
        }
    }

    /// Notes that everybody is answered there.
    package mutating func noteOpen(_ request: RequestHead) { open(Self.place(of: request)) }

    /// True if a request without a credential was answered there, and none was refused since.
    func isOpen(_ request: RequestHead) -> Bool {
        let place = Self.place(of: request)
        return now.open.contains(place) || before.open.contains(place)
    }

    /// True if the same request was refused with another credential in the place of this one, or with none.
    func refusesOthers(than asking: AskingFields, _ request: RequestHead) -> Bool {
        let key = Self.digest(of: request, beside: asking.besides)
        guard let refused = now.refused[key] ?? before.refused[key] else { return false }
        return refused != Self.digest(of: asking.credential)
    }

    private mutating func open(_ place: Int) {
        if now.open.count >= Self.digestCount { turn() }
        now.open.insert(place)
    }

    private mutating func turn() { (before, now) = (now, Generation()) }

    // MARK: - Digests

    /// Fields of a signature, which have another value in each request.
    private static let signing: Set<String> = ["date", "x-amz-date", "x-amz-content-sha256", "signature", "signature-input"]

    private static func place(of request: RequestHead) -> Int {
        var hasher = Hasher()
        hasher.combine(request.method)
        hasher.combine(request.origin)
        hasher.combine(request.target)
        return hasher.finalize()
    }

    /// Of a request but for its credential: a refusal for any other reason, such as a field that a firewall dislikes, is another request's.
    private static func digest(of request: RequestHead, beside others: HTTPFields) -> Int {
        var hasher = Hasher()
        hasher.combine(place(of: request))
        for field in request.fields
        where !SecretFields.contains(field.name) && !signing.contains(field.name.canonicalName) && UnkeyedField(field.name) != .correlates {
            hasher.combine(field)
        }
        hasher.combine(others)
        return hasher.finalize()
    }

    private static func digest(of fields: HTTPFields) -> Int {
        var hasher = Hasher()
        hasher.combine(fields)
        return hasher.finalize()
    }
}

extension AskingFields {
    /// What the request has besides its credential.
    fileprivate var besides: HTTPFields { credential.contains(.authorization) ? others : [:] }
}

// MARK: - Tokens

/// Issuer and subject as claimed by a JWT, unverified (RFC 6750 §2.1, RFC 7519 §4.1.1, §4.1.2; docs/caching.md#partitions *Identity*): they
/// may be trusted only after the upstream has accepted the token.
package struct TokenSubject: Hashable, Sendable {
    /// `iss`; empty if the token has none.
    package let issuer: String
    /// `sub`, never empty.
    package let subject: String

    private let rights: TokenRights

    /// Longer tokens are not parsed, to limit the cost.
    private static let sizeLimit = Int.kib(16)
    private static let depthLimit = 16

    /// The claims in a value of `Authorization`. Nil unless it is a bearer token in the form of a signed JWT (three parts, the signature
    /// possibly empty) with a string `sub` and, if present, a string `iss`.
    package init?(authorization value: String) {
        guard let token = Self.bearer(in: value), token.utf8.count <= Self.sizeLimit else { return nil }
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, Self.object(in: parts[0]) != nil, let claims = Self.object(in: parts[1]),
            let subject = claims["sub"]?.string,
            !subject.isEmpty
        else { return nil }
        switch claims["iss"] {
        case nil: issuer = ""
        case .string(let name)?: issuer = name
        default: return nil
        }
        self.subject = subject
        rights = TokenRights(claims)
    }

    /// Both claims, and those that speak of rights, in one text that is unique to them: a token with less scope does not read what one with more
    /// has read.
    package var text: String {
        let pair = "\(issuer.utf8.count) \(issuer) \(subject)"
        return rights.text.isEmpty ? pair : "\(pair.utf8.count) \(pair)\n\(rights.text)"
    }

    private static func bearer(in value: String) -> Substring? {
        guard value.utf8.count > 7, value.prefix(7).lowercased() == "bearer " else { return nil }
        return value.dropFirst(7).drop { $0 == " " }
    }

    private static func object(in part: Substring.UTF8View) -> JSONObject? {
        Base64URL.decoded(part).flatMap { try? JSONValue.parse($0, depthLimit: depthLimit) }?.object
    }
}

/// The rights that a token claims, as one text (RFC 7519 §4.1.3, RFC 8693 §4, RFC 9068 §2.2): equal for tokens that claim the same, in
/// whatever order.
struct TokenRights: Hashable, Sendable {
    /// Empty without any such claim.
    let text: String

    init(_ claims: JSONObject) { text = Self.lines(of: claims, depth: 0).sorted().joined(separator: "\n") }

    /// Nested objects may have such claims too: `app_metadata: { roles: … }`.
    private static func lines(of claims: JSONObject, depth: Int) -> [String] {
        claims.flatMap { claim -> [String] in
            if speaks(claim.name, of: words) {
                return ["\(claim.name)=\(canonical(claim.value, isScope: speaks(claim.name, of: scopes)))"]
            }
            guard depth < depthLimit, let members = claim.value.object else { return [] }
            return lines(of: members, depth: depth + 1).map { "\(claim.name).\($0)" }
        }
    }

    private static let depthLimit = 4
    /// Claims of one token alone (RFC 7519 §4.1), wherever they are.
    private static let ofOneToken: Set<String> = ["exp", "iat", "nbf", "jti", "auth_time"]
    /// Words of claims whose value is a list, separated by spaces.
    private static let scopes: Set<String> = ["scope", "scopes", "scp", "permissions", "perms"]

    /// Words of claims about who may do what, for whom, and through which client.
    private static let words: Set<String> = [
        "scope", "scopes", "scp", "role", "roles", "group", "groups", "permission", "permissions", "perms", "entitlement", "entitlements",
        "authorities", "privilege", "privileges", "capabilities", "access", "admin", "aud", "audience", "azp", "client", "cid", "appid",
        "tenant", "tid", "org", "organization", "organizations", "account", "workspace", "team", "act", "acr", "amr", "cnf",
    ]

    /// True if a word of the name does, whatever separates the words: `realm_access`, `https://a.example/roles`, `clientId`.
    private static func speaks(_ name: String, of words: Set<String>) -> Bool {
        var (word, wasLower) = ("", false)
        for character in name {
            if !character.isLetter || character.isUppercase && wasLower {
                if words.contains(word) { return true }
                word = ""
            }
            if character.isLetter { word += character.lowercased() }
            wasLower = character.isLowercase
        }
        return words.contains(word)
    }

    /// Elements of arrays, and the parts of a scope (RFC 6749 §3.3), have no order.
    private static func canonical(_ value: JSONValue, isScope: Bool = false) -> String {
        if isScope, let text = value.string { return canonical(.array(text.split(separator: " ").map { .string(String($0)) })) }
        if let elements = value.array { return "[\(elements.map { canonical($0) }.sorted().joined(separator: ","))]" }
        if let members = value.object {
            let texts = members.filter { !ofOneToken.contains($0.name) }.map { "\(canonical(.string($0.name))):\(canonical($0.value))" }
            return "{\(texts.sorted().joined(separator: ","))}"
        }
        return String(decoding: value.serialized(), as: UTF8.self)
    }
}
