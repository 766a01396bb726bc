// Reads whole lists from the admin API, page by page (docs/reference/admin-api.md#lists).
import Foundation

extension AdminClient {
    /// Joins the pages of a list: `{"items": […], "next": null}`. A single page is returned as received.
    func pages(of call: AdminCall) async throws -> AdminReply {
        let first = try await send(call)
        var (items, next) = try Self.page(of: first)
        if next == nil { return first }
        while let cursor = next {
            var call = call
            call.query["cursor"] = cursor
            let (more, following) = try Self.page(of: try await send(call))
            // A page without items, or with the same cursor, would loop forever.
            if more.isEmpty || following == cursor { break }
            items += more
            next = following
        }
        let whole: [String: Any] = ["items": items, "next": NSNull()]
        return AdminReply(
            status: first.status, body: try JSONSerialization.data(withJSONObject: whole, options: [.prettyPrinted, .sortedKeys]))
    }

    private static func page(of reply: AdminReply) throws -> (items: [Any], next: String?) {
        guard let page = try? JSONSerialization.jsonObject(with: reply.body) as? [String: Any], let items = page["items"] as? [Any] else {
            throw CommandFailure(.failed, "the server's response cannot be read: it is not a list")
        }
        return (items, page["next"] as? String)
    }
}
