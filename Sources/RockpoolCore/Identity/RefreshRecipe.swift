// Refreshes an upstream's expired access token while its client is absent: the request, and the tokens in the response (RFC 6749 §5, §6).
import HTTPTypes

/// `upstreams[].refresh` of the configuration.
package struct RefreshRecipe: Hashable, Sendable {
    /// The token endpoint: a path of the upstream, or an absolute https URL.
    package var path: String
    /// Another path with tokens in its responses, such as a login's.
    package var login: String?
    /// Sent with the request if set (RFC 6749 §3.2.1, a public client).
    package var clientID: String?
    /// A file of mode 0600 with a refresh token, used until one has been observed.
    package var tokenFile: String?
    /// JSON Pointers to the tokens in a response.
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

    /// Maximum size of a response with tokens, in bytes.
    package static let answerLimit = Int.kib(64)

    /// True if a request to `target` (path and query) or its response may contain tokens. Such a request is never queued, because its body
    /// would be stored on disk. Every spelling counts under which a lenient server may read the path.
    package func concerns(target: String) -> Bool {
        let asked = target.prefix { $0 != "?" }.lenientPath
        return [path, login].contains { $0.map { $0.prefix { $0 != "?" }.lenientPath == asked } ?? false }
    }

    /// The head of the refresh request; nil if `path` has neither form.
    package func head(origin: OriginAddress) -> RequestHead? {
        let fields: HTTPFields = [.contentType: "application/x-www-form-urlencoded", .accept: "application/json"]
        if path.hasPrefix("/") { return RequestHead(method: .post, origin: origin, target: path, fields: fields) }
        guard let head = try? RequestHead(method: .post, url: path, fields: fields), head.origin.scheme == .https else { return nil }
        return head
    }

    /// The body of the refresh request (RFC 6749 §6).
    package func form(refreshToken: String) -> String {
        var pairs = [("grant_type", "refresh_token"), ("refresh_token", refreshToken)]
        if let clientID { pairs.append(("client_id", clientID)) }
        return pairs.map { "\($0)=\(FormEncoding.encoded($1))" }.joined(separator: "&")
    }

    /// The tokens in a response of the token endpoint or a login; nil if it is not a 2xx with JSON and a bearer token.
    package func tokens(in answer: ResponseHead, body: [UInt8]) -> IssuedTokens? {
        guard (200...299).contains(answer.status), MediaType.isJSON(answer.fields),
            let value = try? JSONValue.parse(body, sizeLimit: Self.answerLimit), let access = text(at: accessToken, in: value)
        else { return nil }
        // A client must not use a token type it does not understand (RFC 6749 §7.1).
        if let type = value["token_type"], type.string?.lowercased() != "bearer" { return nil }
        return IssuedTokens(access: access, refresh: text(at: refreshToken, in: value))
    }

    /// A token is visible ASCII (RFC 6749 appendix A); any other text must not enter a header field.
    private func text(at pointer: String, in value: JSONValue) -> String? {
        guard let text = JSONPointer(pointer)?.get(in: value)?.string, !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return text
    }
}
