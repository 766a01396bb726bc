// Questions for a token of a registry, their answers, and the tokens that Rockpool gives out while the token's server is away
// (https://distribution.github.io/distribution/spec/auth/token; docs/guide/programs.md#registries).
import HTTPTypes

/// A question for a token, by GET, or by POST with a form (OAuth 2).
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
