// CORS of the notes API: pages of the configured origins may do everything, with credentials (Fetch, *CORS protocol*).
import HTTPTypes
import RockpoolCore

/// The origins of pages that may use the API.
struct PagePermissions: Sendable {
    let origins: [String]

    /// The answer to a preflight; nil for any other request, and if no page is allowed at all.
    func preflight(_ request: NotesRequest) -> NotesReply? {
        guard !origins.isEmpty, request.method == .options, request.fields.contains(.accessControlRequestMethod) else { return nil }
        var reply = NotesReply(status: 204)
        permit(&reply, request)
        guard reply.fields.contains(.accessControlAllowOrigin) else {
            return .problem(403, about: "origin", detail: "This origin is not allowed.")
        }
        reply.fields[.accessControlAllowMethods] = "GET, POST, PUT, PATCH, DELETE"
        reply.fields[.accessControlAllowHeaders] = "authorization, content-type, if-match"
        return reply
    }

    /// Adds the permission of the request's origin to a reply.
    func permit(_ reply: inout NotesReply, _ request: NotesRequest) {
        guard !origins.isEmpty else { return }
        reply.fields.append(HTTPField(name: .vary, value: "Origin"))
        guard let origin = request.fields[.origin], origins.contains(origin) else { return }
        reply.fields[.accessControlAllowOrigin] = origin
        reply.fields[.accessControlAllowCredentials] = "true"
    }
}
