// The reads other than notes: assets, search, and a delayed response.
import HTTPTypes
import OrderedCollections
import RockpoolCore

extension NotesStore {
    /// The largest asset, in bytes.
    static let assetLimit = Int.mib(64)
    /// The longest delay of a response.
    static let slowest = TimeSpan.minutes(5)

    /// `/v1/assets/{n}`: an image of n bytes, always the same, fresh for an hour.
    func readAsset(for call: Call) -> NotesReply {
        guard let size = Int(call.id), (0...Self.assetLimit).contains(size) else { return .notFound }
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        let bytes = (0..<size).map { $0 < signature.count ? signature[$0] : UInt8(truncatingIfNeeded: $0 &* 31) }
        let fields: HTTPFields = [.contentType: "image/png", .eTag: "\"asset-\(size)\"", .cacheControl: "max-age=3600"]
        return conditional(NotesReply(status: 200, fields: fields, body: bytes), for: call)
    }

    /// `POST /v1/search` with `{"query"}`: the notes with that text in their title or body.
    func search(for call: Call) -> NotesReply {
        do {
            guard let query = try call.object()["query"]?.string else { return .problem(422, about: "invalid", detail: "query is missing") }
            let found = notes.values.filter { note in
                ["title", "body"].contains { note.members[$0]?.string?.contains(query) ?? false }
            }
            return .json(.array(found.map(\.representation)))
        } catch { return error.reply }
    }

    /// `/v1/slow?ms=`: a response delayed by that many milliseconds.
    func answerSlowly(for call: Call) -> NotesReply {
        let wait = min(max(Int64(call.request.query(named: "ms") ?? "") ?? 1000, 0), Self.slowest.milliseconds)
        var reply = NotesReply.json(["waited": .number(JSONNumber(wait))], fields: [.cacheControl: "no-cache"])
        reply.delay = .milliseconds(wait)
        return reply
    }
}
