// `/v1/login` and `/v1/me`: credentials and what is private to them.
import HTTPTypes
import RockpoolCore

extension NotesStore {
    /// Gives a token to whoever names a user; it has the form of a JWT, and another one for every login.
    mutating func logIn(_ call: Call) -> NotesReply {
        do {
            guard let user = try call.object()["user"]?.string, !user.isEmpty else {
                return .problem(422, "invalid", "user is missing")
            }
            let token = issueToken(to: user)
            return .json(["token": .string(token), "user": .string(user)], fields: [.cacheControl: "no-store"])
        } catch { return error.reply }
    }

    func readAccount(_ call: Call) -> NotesReply {
        guard let user = user(of: call.request) else { return .unauthorized }
        return .json(["user": .string(user)], fields: [.cacheControl: "private, no-cache", .vary: "Authorization"])
    }

    /// Whose live token a request carries.
    func user(of request: NotesRequest) -> String? { request.bearer.flatMap { users[$0] } }

    mutating func issueToken(to user: String) -> String {
        let header: JSONValue = ["alg": "none", "typ": "JWT"]
        let claims: JSONValue = ["iss": "notes", "sub": .string(user), "jti": .string(newID())]
        let token = [header, claims].map { Base64URL.encode($0.serialized()) }.joined(separator: ".") + "."
        users[token] = user
        return token
    }
}

extension NotesReply {
    static let unauthorized = problem(
        401, "unauthorized", "A live token is needed.", fields: [.wwwAuthenticate: "Bearer realm=\"notes\""])
}

/// RFC 4648 §5, without padding.
enum Base64URL {
    static func encode(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var out: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0...group.count { out.append(alphabet[bits >> (18 - 6 * place) & 63]) }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
