// `/v1/login`, `/v1/token` and `/v1/me`: credentials, their renewal (RFC 6749 §6), and a private resource.
import HTTPTypes
import RockpoolCore

extension NotesStore {
    /// Issues a token to any client that names a user; it has the form of a JWT and differs for every login.
    mutating func logIn(for call: Call) -> NotesReply {
        do {
            guard let user = try call.object()["user"]?.string, !user.isEmpty else {
                return .problem(422, about: "invalid", detail: "user is missing")
            }
            let refresh = "refresh-\(newID())-\(user)"
            refreshers[refresh] = user
            var answer = tokens(of: user)
            answer["token"] = answer["access_token"]
            answer["user"] = .string(user)
            answer["refresh_token"] = .string(refresh)
            return .json(answer, fields: [.cacheControl: "no-store"])
        } catch { return error.reply }
    }

    /// Issues another access token for a valid refresh token, which stays valid.
    mutating func refresh(for call: Call) -> NotesReply {
        let isForm = call.request.fields[.contentType]?.hasPrefix("application/x-www-form-urlencoded") ?? false
        let form = NotesRequest(method: .get, target: "?" + String(decoding: call.request.body, as: UTF8.self))
        let object = isForm ? nil : try? call.object()
        func member(named name: String) -> String? { isForm ? form.query(named: name) : object?[name]?.string }
        guard member(named: "grant_type") == "refresh_token" else { return .refusedGrant("unsupported_grant_type") }
        guard let user = member(named: "refresh_token").flatMap({ refreshers[$0] }) else { return .refusedGrant("invalid_grant") }
        return .json(tokens(of: user), fields: [.cacheControl: "no-store"])
    }

    private mutating func tokens(of user: String) -> JSONValue {
        ["access_token": .string(issueToken(to: user)), "token_type": "Bearer"]
    }

    func readAccount(for call: Call) -> NotesReply {
        guard let user = user(of: call.request) else { return .unauthorized }
        return .json(["user": .string(user)], fields: [.cacheControl: "private, no-cache", .vary: "Authorization"])
    }

    /// The user of the request's token; nil if the token is missing or invalid.
    func user(of request: NotesRequest) -> String? { request.bearer.flatMap { users[$0] } }

    mutating func issueToken(to user: String) -> String {
        let header: JSONValue = ["alg": "none", "typ": "JWT"]
        let claims: JSONValue = ["iss": "notes", "sub": .string(user), "jti": .string(newID())]
        let token = [header, claims].map { Base64URL.encoded($0.serialized()) }.joined(separator: ".") + "."
        users[token] = user
        return token
    }
}

extension NotesReply {
    /// The error response of RFC 6749 §5.2.
    static func refusedGrant(_ error: String) -> NotesReply { .json(["error": .string(error)], status: 400) }

    static let unauthorized = problem(
        401, about: "unauthorized", detail: "A live token is needed.", fields: [.wwwAuthenticate: "Bearer realm=\"notes\""])
}
