// `/v1/events`: the engine's events as Server-Sent Events (docs/reference/admin-api.md#events; WHATWG HTML §9.2).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

struct EventRoutes {
    /// After this time without an event a comment is sent, so that proxies and clients know that the stream is alive.
    private static let silence = Duration.seconds(15)

    let feed: EventFeed

    func add(to router: Router<AdminContext>) {
        router.get("/v1/events") { request, context in try stream(request: request, context: context) }
        router.get("/v1/stats/history") { _, _ in Response.json(["items": .array(feed.history), "next": .null]) }
    }

    private func stream(request: Request, context: AdminContext) throws -> Response {
        let query = try AdminQuery(request, known: ["lastEventId"])
        let last = try query.one(named: "lastEventId") ?? request.headers[.lastEventID]
        guard feed.listenerCount < feed.places else {
            return .problem(.noRoom, detail: "\(feed.places) event streams are open already")
        }
        let (feed, channel) = (feed, context.channel)
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                guard var place = feed.join(after: last, hangUp: { channel.close(promise: nil) }) else {
                    return try await writer.finish(nil)
                }
                defer { feed.leave(place) }
                var spoken = ContinuousClock.now
                try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                for await _ in place.wakes {
                    guard var text = feed.frames(for: &place) else { break }
                    if text.isEmpty, ContinuousClock.now - spoken >= Self.silence { text = ": still here\n\n" }
                    guard !text.isEmpty else { continue }
                    feed.writing(place, isWriting: true)
                    try await writer.write(ByteBuffer(string: text))
                    feed.writing(place, isWriting: false)
                    spoken = .now
                }
                try await writer.finish(nil)
            })
    }

}
