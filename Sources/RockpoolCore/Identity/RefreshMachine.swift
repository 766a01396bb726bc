// Decides when an identity's access token is refreshed: once for all waiting operations, and not repeatedly (docs/outbox.md#credentials,
// RFC 6749 §5.2).
import HTTPTypes

/// The refreshes of one identity.
package struct RefreshMachine: Hashable, Sendable {
    /// The action of an operation that needs a valid credential.
    package enum Action: Hashable, Sendable {
        /// A newer credential is available: send that one.
        case useLive
        /// Refresh; a call of `ended` must follow.
        case refresh
        /// Wait for the running refresh.
        case join
        /// Park until the client supplies another credential.
        case park(Reason)
    }

    package enum Reason: String, Hashable, Sendable {
        /// No refresh token is known.
        case noToken = "no-token"
        /// The refresh token, or the access token it produced, was refused.
        case refused
        /// The last refresh failed a short time ago.
        case justFailed = "just-failed"
    }

    /// The outcome of a refresh.
    package enum Ending: Hashable, Sendable {
        case renewed
        /// The upstream refused the refresh token, or the new access token belongs to another identity.
        case refused
        /// The outcome does not show whether the token is valid: no response, 5xx, 429.
        case failed
    }

    /// The time from a failed refresh to the next.
    package static let pause = TimeSpan.seconds(30)

    private var isRunning = false
    private var isRefused = false
    /// True until the upstream has accepted the credential produced by the last refresh.
    private var isUntried = false
    private var notBefore = Timestamp.distantPast

    package init() {}

    /// Called when an operation has no credential, or its credential was refused.
    /// - Parameters:
    ///   - isLive: True if the identity's current credential is the refused one, false if it is a newer one; nil without one.
    ///   - hasToken: True if a refresh token is available.
    package mutating func needed(isLive: Bool?, hasToken: Bool, now: Timestamp) -> Action {
        if isRunning { return .join }
        if isLive == false { return .useLive }
        // The credential produced by the last refresh was refused too; another refresh would not help.
        if isUntried { isRefused = true }
        if let reason = obstacle(hasToken: hasToken, now: now) { return .park(reason) }
        isRunning = true
        return .refresh
    }

    /// The reason why no refresh is attempted now; nil if one may be attempted.
    package func obstacle(hasToken: Bool, now: Timestamp) -> Reason? {
        if !hasToken { return .noToken }
        if isRefused { return .refused }
        return now < notBefore ? .justFailed : nil
    }

    /// Called when the running refresh has ended.
    package mutating func ended(_ ending: Ending, now: Timestamp) {
        isRunning = false
        switch ending {
        case .renewed: isUntried = true
        case .refused: isRefused = true
        case .failed: notBefore = now + Self.pause
        }
    }

    /// Called when the upstream has accepted the identity's credential.
    package mutating func accepted() {
        isUntried = false
        isRefused = false
    }

    /// Called when the client has received another refresh token.
    package mutating func learnt() {
        isUntried = false
        isRefused = false
        notBefore = .distantPast
    }
}

/// `upstreams[].refresh` of the configuration (RFC 6749 §5, §6).
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

/// The tokens issued by a token endpoint (RFC 6749 §5.1).
package struct IssuedTokens: Hashable, Sendable {
    /// The access token.
    package var access: String
    /// Nil: the previous refresh token stays valid.
    package var refresh: String?

    package init(access: String, refresh: String? = nil) {
        self.access = access
        self.refresh = refresh
    }

    /// The access token as the value of `Authorization` (RFC 6750 §2.1).
    package var authorization: String { "Bearer \(access)" }
}

/// The key with which requests to an upstream are signed anew (docs/reference/configuration.md#upstreams).
package struct SigV4Rule: Hashable, Sendable {
    package var keyID: String
    /// A file with the secret, mode 0600.
    package var secretFile: String
    package var region: String
    package var service: String

    package init(keyID: String, secretFile: String, region: String = "us-east-1", service: String = "s3") {
        (self.keyID, self.secretFile, self.region, self.service) = (keyID, secretFile, region, service)
    }
}

/// How requests to an upstream are signed anew.
package struct SigningSettings: Hashable, Sendable {
    package var sigV4: SigV4Rule

    package init(sigV4: SigV4Rule) { self.sigV4 = sigV4 }
}
