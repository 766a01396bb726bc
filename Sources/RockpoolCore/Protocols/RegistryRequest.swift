// The requests of container clients to a registry, by what they ask for
// (https://github.com/opencontainers/distribution-spec/blob/main/spec.md; https://distribution.github.io/distribution/spec/auth/token).
import HTTPTypes

/// A request on a route with `kind: oci`.
package enum RegistryRequest: Hashable, Sendable {
    /// Whether the registry is there, and how it asks for credentials.
    case base
    /// A blob or a manifest by its digest: its bytes never change.
    case content(repository: String)
    /// A manifest by its tag.
    case tag(repository: String)
    /// The tags of a repository, or what refers to a manifest.
    case listing(repository: String)
    /// A token for some scopes.
    case token
    /// The state of an upload.
    case upload
    /// Anything else, such as the catalogue.
    case other

    package init(_ request: RequestHead) {
        let segments = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard segments.first == "v2" else {
            self = Self.asksForToken(request) ? .token : .other
            return
        }
        let path = segments.dropFirst()
        if path.isEmpty || path.count == 1 && path.first == "" {
            self = .base
        } else if zip(path, path.dropFirst()).contains(where: { $0 == "blobs" && $1 == "uploads" }) {
            self = .upload
        } else if let found = Self.inRepository(Array(path)) {
            self = found
        } else {
            self = Self.asksForToken(request) ? .token : .other
        }
    }

    private static func inRepository(_ path: [Substring]) -> RegistryRequest? {
        guard path.count >= 3, path.dropLast(2).allSatisfy(isPartOfName), let last = path.last else { return nil }
        let repository = path.dropLast(2).joined(separator: "/")
        switch path[path.count - 2] {
        case "blobs": return BodyDigests.Digest(named: last) == nil ? nil : .content(repository: repository)
        case "manifests":
            if BodyDigests.Digest(named: last) != nil { return .content(repository: repository) }
            return isTag(last) ? .tag(repository: repository) : nil
        case "tags": return last == "list" ? .listing(repository: repository) : nil
        case "referrers": return BodyDigests.Digest(named: last) == nil ? nil : .listing(repository: repository)
        default: return nil
        }
    }

    /// True for a component of a repository's name: nothing in it has another spelling.
    private static func isPartOfName(_ segment: Substring) -> Bool {
        guard let first = segment.utf8.first, first.isAlphanumeric else { return false }
        return segment.utf8.allSatisfy {
            $0.isAlphanumeric || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
        }
    }

    private static func isTag(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, first.isAlphanumeric || first == UInt8(ascii: "_"), text.utf8.count <= 128 else { return false }
        return text.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
    }

    private static func asksForToken(_ request: RequestHead) -> Bool {
        if request.method == .post { return MediaType.essence(of: request.fields) == "application/x-www-form-urlencoded" }
        guard request.method == .get, let query = request.query else { return false }
        return query.split(separator: "&").contains { $0.hasPrefix("scope=") || $0.hasPrefix("service=") }
    }

    /// The repository that it is about; nil if it is about none.
    package var repository: String? {
        switch self {
        case .content(let repository), .tag(let repository), .listing(let repository): repository
        case .base, .token, .upload, .other: nil
        }
    }

    /// True for a manifest that is asked for by its tag.
    package var isTag: Bool { if case .tag = self { true } else { false } }

    /// True for a list of tags or of what refers to a manifest.
    package var isListing: Bool { if case .listing = self { true } else { false } }

    /// What has a digest never changes; anything else is asked for anew while the registry is there.
    package var strategy: Strategy {
        switch self {
        case .content: .cacheFirst
        case .base, .tag, .listing, .other: .networkFirst
        case .token, .upload: .networkOnly
        }
    }

    /// What its client is told where the registry cannot be reached.
    package static func refusal(of request: RequestHead) -> String {
        let host = request.origin.hostAndPort
        if RegistryRequest(request) == .token { return "\(host) cannot be reached, and gave this client no token before." }
        if request.method.isSafe { return "\(host) cannot be reached, and this was not pulled before." }
        return "\(host) cannot be reached: nothing was pushed or deleted. Do it again when it is back."
    }
}

extension BodyDigests.Digest {
    /// Reads `sha256:…`, as registries name content; nil for another algorithm, and for what is no digest.
    package init?(named text: Substring) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let known: (BodyDigests.Algorithm, Int)? =
            switch parts[0] {
            case "sha256": (.sha256, 32)
            case "sha512": (.sha512, 64)
            default: nil
            }
        // Upper case would be another spelling of the same digest.
        guard let (algorithm, length) = known, parts[1].utf8.count == 2 * length,
            parts[1].utf8.allSatisfy({ $0.isHexDigit && !($0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "F")) })
        else { return nil }
        let digits = parts[1].utf8.compactMap(FormEncoding.digit)
        self.init(algorithm: algorithm, bytes: stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
    }
}

extension CacheKey {
    /// The digest that the content of a copy has, if its URL names one: of a registry's blob or manifest.
    package var contentDigest: BodyDigests.Digest? {
        guard partition == .registry, target.hasPrefix("/v2/") else { return nil }
        let segments = target.prefix { $0 != "?" }.split(separator: "/")
        guard let name = segments.last, let kind = segments.dropLast().last, kind == "blobs" || kind == "manifests" else { return nil }
        return BodyDigests.Digest(named: name)
    }
}

/// A question for a token, by GET, or by POST with a form (OAuth 2; docs/guide/programs.md#registries).
package struct TokenQuestion: Hashable, Sendable {
    /// What tells its client from others, which is a secret; empty without a credential. A password is the same one in a field and in a form.
    package let asker: String
    /// The repositories that it wants to pull from.
    package let repositories: [String]

    /// More repositories than a pull, and a copy between repositories, ask for.
    private static let limit = 16

    package init(_ request: RequestHead, form: [UInt8] = []) {
        let fields = Self.fields(of: Array((request.query ?? "").utf8)) + Self.fields(of: form)
        let value = { (name: String) in fields.last { $0.name == name }?.value }
        var lines = request.fields.filter { SecretFields.identifies($0.name) && $0.name != .authorization }.map {
            "\($0.name.canonicalName): \($0.value)"
        }
        if let authorization = request.fields[.authorization] { lines.append(Self.user(in: authorization) ?? authorization) }
        if let token = value("refresh_token") { lines.append("refresh \(token)") }
        if let password = value("password") { lines.append("user \(value("username") ?? ""):\(password)") }
        asker = lines.joined(separator: "\n")
        let scopes = fields.filter { $0.name == "scope" }.flatMap { $0.value.split(separator: " ") }
        repositories = Array(scopes.compactMap(Self.repository).prefix(Self.limit))
    }

    private static func user(in authorization: String) -> String? {
        guard authorization.prefix(6).lowercased() == "basic " else { return nil }
        let text = String(authorization.dropFirst(6).drop { $0 == " " })
        return Base64.decode(text).flatMap { String(validating: $0, as: UTF8.self) }.map { "user \($0)" }
    }

    /// The name in `repository:NAME:ACTIONS`, if one of these is to pull.
    private static func repository(in scope: Substring) -> String? {
        guard let first = scope.firstIndex(of: ":"), let last = scope.lastIndex(of: ":"), first < last,
            scope[..<first] == "repository" || scope.hasPrefix("repository(")
        else { return nil }
        let actions = scope[scope.index(after: last)...].split(separator: ",")
        guard actions.contains("pull") || actions.contains("*") else { return nil }
        return String(scope[scope.index(after: first)..<last])
    }

    private static func fields(of form: [UInt8]) -> [(name: String, value: String)] {
        form.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (FormEncoding.text(of: parts[0]), parts.count > 1 ? FormEncoding.text(of: parts[1]) : "")
        }
    }
}

/// The answer of a token's server.
package struct TokenAnswer: Hashable, Sendable {
    /// The tokens in it, which are one in most answers.
    package let tokens: [String]
    /// How long they are good for; 60 seconds where it does not say so.
    package let lifetime: TimeSpan
    private let names: [String]

    private static let holding = ["token", "access_token"]
    private static let shortest = TimeSpan.seconds(60)
    private static let longest = TimeSpan.days(1)

    /// Nil for what holds no token.
    package init?(_ body: [UInt8]) {
        guard let answer = (try? JSONValue.parse(body))?.object else { return nil }
        names = Self.holding.filter { answer[$0]?.string?.isEmpty == false }
        guard !names.isEmpty else { return nil }
        tokens = Array(Set(names.compactMap { answer[$0]?.string }))
        let seconds = answer["expires_in"]?.integer ?? 0
        lifetime = min(Self.longest, max(Self.shortest, .seconds(seconds)))
    }

    /// What is kept of it: its shape, and no token.
    package var kept: [UInt8] {
        let lifetime: JSONValue = .number(JSONNumber(lifetime.seconds))
        return JSONValue.object(JSONObject([("expires_in", lifetime), ("names", .array(names.map { .string($0) }))])).serialized()
    }

    /// An answer of the kept shape with another token; nil for what `kept` has not made.
    package static func answer(of kept: [UInt8], with token: (TimeSpan) -> String, at moment: Timestamp) -> [UInt8]? {
        guard let shape = (try? JSONValue.parse(kept))?.object, let seconds = shape["expires_in"]?.integer,
            let names = shape["names"]?.array?.compactMap(\.string), !names.isEmpty
        else { return nil }
        let text = token(.seconds(seconds))
        var members: [(String, JSONValue)] = names.map { ($0, .string(text)) }
        if names.contains("access_token") { members.append(("token_type", "Bearer")) }
        members += [("expires_in", .number(JSONNumber(seconds))), ("issued_at", .string(RFC3339.format(moment)))]
        return JSONValue.object(JSONObject(members)).serialized()
    }
}

/// A token that Rockpool gives out while the token's server is away, to a client that was given one before. It opens what a registry let that
/// client have, is known by its seal, and is never sent to a registry.
package struct RegistryToken: Hashable, Sendable {
    /// The name of the client that asked for it.
    package let holder: String
    package let repositories: [String]
    package let expiresAt: Timestamp

    package init(holder: String, repositories: [String], expiresAt: Timestamp) {
        (self.holder, self.repositories, self.expiresAt) = (holder, repositories, Timestamp(seconds: expiresAt.seconds))
    }

    private static let prefix = "rockpool."
    private static let longest = Int.kib(8)

    /// Its text.
    /// - Parameter seal: a name of bytes that only this installation can make.
    package func text(sealedBy seal: ([UInt8]) -> String) -> String {
        let content = Array(([holder, String(expiresAt.seconds)] + repositories).joined(separator: "\n").utf8)
        return Self.prefix + Base64URL.encoded(content) + "." + seal(Self.sealed(content))
    }

    /// True for a value of `Authorization` that has the form of one; its seal may be wrong.
    package static func isOne(_ authorization: String) -> Bool { text(in: authorization) != nil }

    /// Reads a value of `Authorization`; nil if the seal is not that of its content.
    package init?(authorization: String, sealedBy seal: ([UInt8]) -> String) {
        guard let parts = Self.text(in: authorization)?.split(separator: ".", omittingEmptySubsequences: false), parts.count == 2,
            let content = Base64URL.decoded(parts[0].utf8)
        else { return nil }
        let (own, given) = (Array(seal(Self.sealed(content)).utf8), Array(parts[1].utf8))
        // In the same time wherever they differ.
        guard own.count == given.count, zip(own, given).reduce(UInt8(0), { $0 | ($1.0 ^ $1.1) }) == 0 else { return nil }
        let lines = String(decoding: content, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
        guard lines.count >= 2, let seconds = Int64(lines[1]) else { return nil }
        self.init(holder: lines[0], repositories: Array(lines.dropFirst(2)), expiresAt: Timestamp(seconds: seconds))
    }

    private static func text(in authorization: String) -> Substring? {
        guard authorization.utf8.count <= longest, authorization.prefix(7).lowercased() == "bearer " else { return nil }
        let token = authorization.dropFirst(7).drop { $0 == " " }
        return token.hasPrefix(prefix) ? token.dropFirst(prefix.count) : nil
    }

    /// No credential has a line feed, so that no name of one is a seal.
    private static func sealed(_ content: [UInt8]) -> [UInt8] { Array("registry\ntoken\n".utf8) + content }
}

/// The answers of registries about credentials, by their names, while the server runs.
package struct RegistryAdmissions: Sendable {
    /// The most tokens, and the most answers.
    private static let maximumCount = 4096
    /// After this time a registry is asked again.
    package static let askedAgainAfter = TimeSpan.minutes(10)

    private struct Token {
        let holder: String
        let expiresAt: Timestamp
    }

    private struct Place: Hashable {
        let credential: String
        let repository: String
    }

    private var tokens: [String: Token] = [:]
    private var admitted: [Place: Timestamp] = [:]

    package init() {}

    /// Notes that a token was given to the client of a name.
    package mutating func note(token: String, of holder: String, until end: Timestamp, now: Timestamp) {
        if tokens.count >= Self.maximumCount { tokens = tokens.filter { $0.value.expiresAt > now } }
        if tokens.count >= Self.maximumCount { tokens = [:] }
        tokens[token] = Token(holder: holder, expiresAt: end)
    }

    /// The name of the client that a token was given to.
    package func holder(ofToken token: String) -> String? { tokens[token]?.holder }

    /// Notes what a registry has answered to a credential.
    /// - Parameters:
    ///   - repository: its URL.
    ///   - token: the name of the token, which is good no longer than it was given for.
    package mutating func note(_ isAdmitted: Bool, _ credential: String, to repository: String, token: String?, now: Timestamp) {
        let place = Place(credential: credential, repository: repository)
        guard isAdmitted else {
            admitted[place] = nil
            return
        }
        if admitted.count >= Self.maximumCount { admitted = admitted.filter { $0.value > now } }
        if admitted.count >= Self.maximumCount { admitted = [:] }
        admitted[place] = min(now + Self.askedAgainAfter, token.flatMap { tokens[$0]?.expiresAt } ?? .distantFuture)
    }

    /// True if the registry need not be asked again.
    package func isAdmitted(_ credential: String, to repository: String, now: Timestamp) -> Bool {
        admitted[Place(credential: credential, repository: repository)].map { $0 > now } ?? false
    }

    /// True if the registry's last answer was a yes, however long ago.
    package func wasAdmitted(_ credential: String, to repository: String) -> Bool {
        admitted[Place(credential: credential, repository: repository)] != nil
    }
}
