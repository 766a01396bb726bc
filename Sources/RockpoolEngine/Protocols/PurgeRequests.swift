// `PURGE` and `BAN` of a client on this machine with the admin token (docs/reference/behaviour.md#purge).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// Answers the purge methods for declared upstreams; requests to other hosts are passed on.
struct PurgeRequests: Sendable {
    let cache: CacheStore
    let news: StaleNews
    let active: ActiveConfiguration
    /// Nil if it could not be read; then every purge is refused.
    let token: String?
    let logger: Logger

    /// Returns the reply to a purge; nil for any other request.
    func reply(to exchange: Exchange, _ trace: inout Trace) async -> Reply? {
        let request = exchange.request
        guard let method = PurgeMethod(request), active.routes.upstream(for: request.origin) != nil else { return nil }
        let problem: Problem
        if !exchange.isLocalClient {
            problem = Problem(.forbiddenTarget, detail: "\(method.rawValue) is for clients on this machine")
        } else if !hasToken(request.fields) {
            problem = Problem(
                .unauthorized, detail: "\(method.rawValue) needs Authorization: Bearer with the token in <state_dir>/admin-token")
        } else {
            do {
                let selection = selection(of: method, request)
                let removed = try await cache.remove(where: .matching(selection))
                news.tell(selection)
                let body: JSONValue = [
                    "entries": .number(JSONNumber(Int64(removed.entries))), "bytes": .number(JSONNumber(removed.bytes)),
                ]
                let head = ResponseHead(status: 200, fields: [.contentType: "application/json", .cacheControl: "no-store"])
                return Reply(head: head, body: .bytes(ByteBuffer(bytes: body.serialized())), trace: trace)
            } catch {
                logger.error("a purge failed: \(error)")
                problem = Problem(.upstreamError, detail: "the purge failed: \(error)")
            }
        }
        trace.verdict = .refused
        trace.record(.refused(problem: problem.type))
        var reply = Reply(problem, trace)
        if problem.status == 401 { reply.head.fields[.wwwAuthenticate] = "Bearer realm=\"rockpool\"" }
        return reply
    }

    private func selection(of method: PurgeMethod, _ request: RequestHead) -> CacheSelection {
        var selection = CacheSelection()
        selection.origin = request.origin
        let tags = CacheTags.names(in: request.fields) + CacheGroups.names(in: request.fields)
        if !tags.isEmpty {
            selection.groups = tags
        } else if method == .ban || request.target.contains("*") {
            selection.glob = request.url
        } else {
            selection.urls = [request.url]
        }
        return selection
    }

    /// Compares the token in constant time for a given length.
    private func hasToken(_ fields: HTTPFields) -> Bool {
        guard let token, let given = fields[.authorization], given.lowercased().hasPrefix("bearer ") else { return false }
        let (a, b) = (Array(given.dropFirst(7).utf8), Array(token.utf8))
        guard a.count == b.count else { return false }
        return zip(a, b).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
