// The request for credentials that is kept for the time while its upstream is away (docs/caching.md#challenges).
import HTTPTypes

/// Many programs send their credential only after a 401 that asks for it (RFC 9110 §11.6.1). Without that answer they would never reach the
/// copies that are stored for their identity.
package enum KeptChallenge {
    /// The schemes that a program answers at once with what it has. Of others (NTLM, Negotiate) the answer is a talk on one connection.
    private static let schemes: Set<String> = ["basic", "digest", "bearer"]
    /// Those of programs that have a name and a password, and try without.
    private static let schemesOfWrites: Set<String> = ["basic", "digest"]
    /// Of the spaces of a request, this many are looked for.
    private static let depth = 16

    /// True for a 401 that asks a request without credentials for such a one, at an upstream whose answers are kept.
    /// - Parameter identity: the partition of the request; nil without credentials.
    package static func isOne(_ response: ResponseHead, to request: RequestHead, policy: CachePolicy, identity: String?) -> Bool {
        let known = request.method.isSafe ? Self.schemes : schemesOfWrites
        return response.status == 401 && mayBeGiven(to: request, policy: policy, identity: identity)
            && response.fields[values: .wwwAuthenticate].contains { !schemes(in: $0).isDisjoint(with: known) }
    }

    /// True for a request that a challenge can answer.
    package static func mayBeGiven(to request: RequestHead, policy: CachePolicy, identity: String?) -> Bool {
        policy == .offlineFirst && identity == nil && !request.fields.contains(.authorization)
    }

    /// The protection spaces that a request may be in, the narrowest first: its directory, and those above (RFC 7617 §2.2). A POST may be open
    /// to all beside one that is not, so it has a space of its own.
    package static func spaces(of request: RequestHead) -> [String] {
        let path = request.path
        if request.method == .post { return [path] }
        var (spaces, end) = ([String](), path.endIndex)
        while spaces.count < depth, let slash = path[..<end].lastIndex(of: "/") {
            spaces.append(String(path[...slash]))
            end = slash
        }
        return spaces
    }

    /// The head of a challenge as it is kept for its space: without what concerns only the request that it answered.
    package static func head(of challenge: ResponseHead) -> ResponseHead {
        ResponseHead(
            status: 401, fields: HTTPFields(challenge.fields.filter { [.wwwAuthenticate, .date].contains($0.name) }))
    }

    /// The schemes of the challenges in one field, which may hold several (RFC 9110 §11.6.1).
    private static func schemes(in value: String) -> Set<String> {
        // A member without a scheme is a further parameter of the challenge before it.
        Set(FieldList.members(of: value).map { $0.prefix { $0 != " " && $0 != "=" }.lowercased() })
    }
}
