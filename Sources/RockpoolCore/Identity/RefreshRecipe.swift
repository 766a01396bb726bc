// How an upstream's expired access token is renewed while its client is away: the request and what its answer says (RFC 6749 §5, §6).
import HTTPTypes

/// `upstreams[].refresh` of the configuration.
package struct RefreshRecipe: Hashable, Sendable {
    /// The token endpoint: a path of the upstream, or an absolute https URL.
    package var path: String
    /// A further path whose answers hold tokens, such as a login's.
    package var login: String?
    /// Sent along where given (RFC 6749 §3.2.1, a public client).
    package var clientID: String?
    /// A file of mode 0600 with a refresh token for when none has been seen.
    package var tokenFile: String?
    /// JSON Pointers to the tokens in an answer.
    package var accessToken: String
    package var refreshToken: String

    package init(
        path: String, login: String? = nil, clientID: String? = nil, tokenFile: String? = nil, accessToken: String = "/access_token",
        refreshToken: String = "/refresh_token"
    ) {
        self.path = path
        self.login = login
        self.clientID = clientID
        self.tokenFile = tokenFile
        self.accessToken = accessToken
        self.refreshToken = refreshToken
    }

    /// Answers with tokens are not longer, bytes.
    package static let answerLimit = 64 << 10

    /// Whether what is sent to `target` (path and query) and what is answered may hold tokens. Such a request is never queued: its
    /// body would lie on the disk.
    package func concerns(target: String) -> Bool {
        let asked = target.prefix { $0 != "?" }
        return [path, login].contains { $0.map { $0.prefix { $0 != "?" } == asked } ?? false }
    }

    /// Where the refresh goes; nil when `path` is neither form.
    package func head(origin: OriginAddress) -> RequestHead? {
        let fields: HTTPFields = [.contentType: "application/x-www-form-urlencoded", .accept: "application/json"]
        if path.hasPrefix("/") { return RequestHead(method: .post, origin: origin, target: path, fields: fields) }
        guard let head = try? RequestHead(method: .post, url: path, fields: fields), head.origin.scheme == .https else { return nil }
        return head
    }

    /// What is sent there (RFC 6749 §6).
    package func form(refreshToken: String) -> String {
        var pairs = [("grant_type", "refresh_token"), ("refresh_token", refreshToken)]
        if let clientID { pairs.append(("client_id", clientID)) }
        return pairs.map { "\($0)=\(FormEncoding.encoded($1))" }.joined(separator: "&")
    }

    /// The tokens an answer of the token endpoint or a login holds; nil when it is no 2xx JSON with a bearer token.
    package func tokens(in answer: ResponseHead, body: [UInt8]) -> IssuedTokens? {
        guard (200...299).contains(answer.status), MediaType.isJSON(answer.fields),
            let value = try? JSONValue.parse(body, sizeLimit: Self.answerLimit), let access = text(at: accessToken, in: value)
        else { return nil }
        // A type that is not understood must not be used (RFC 6749 §7.1).
        if let type = value["token_type"], type.string?.lowercased() != "bearer" { return nil }
        return IssuedTokens(access: access, refresh: text(at: refreshToken, in: value))
    }

    /// A token is visible ASCII (RFC 6749 appendix A): nothing else may come into a header field.
    private func text(at pointer: String, in value: JSONValue) -> String? {
        guard let text = JSONPointer(pointer)?.get(in: value)?.string, !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return text
    }
}

/// What a token endpoint has given out.
package struct IssuedTokens: Hashable, Sendable {
    /// The access token.
    package var access: String
    /// Nil: the one before stays good.
    package var refresh: String?

    package init(access: String, refresh: String? = nil) {
        self.access = access
        self.refresh = refresh
    }

    /// The access token as `Authorization` carries it (RFC 6750 §2.1).
    package var authorization: String { "Bearer \(access)" }
}
