// Lists of the admin API, whole: page after page until there is no next one (contract §5).
import Foundation

extension AdminClient {
    /// Every page of a list as one: `{"items": […], "next": null}`. A list of one page is given as it came.
    func pages(of call: AdminCall) async throws -> AdminReply {
        let first = try await send(call)
        var (items, next) = try Self.page(first)
        if next == nil { return first }
        while let cursor = next {
            var call = call
            call.query["cursor"] = cursor
            let (more, following) = try Self.page(try await send(call))
            // A cursor that brings nothing would be asked for ever.
            if more.isEmpty || following == cursor { break }
            items += more
            next = following
        }
        let whole: [String: Any] = ["items": items, "next": NSNull()]
        return AdminReply(
            status: first.status, body: try JSONSerialization.data(withJSONObject: whole, options: [.prettyPrinted, .sortedKeys]))
    }

    private static func page(_ reply: AdminReply) throws -> (items: [Any], next: String?) {
        guard let page = try? JSONSerialization.jsonObject(with: reply.body) as? [String: Any], let items = page["items"] as? [Any] else {
            throw CommandFailure(.failed, "the server's answer cannot be read: it is not a list")
        }
        return (items, page["next"] as? String)
    }
}
