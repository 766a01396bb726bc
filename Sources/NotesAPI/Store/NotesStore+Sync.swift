// `/v1/sync/pull` and `/v1/sync/push`: changes since a cursor of the server, and many writes in one request (docs/guide/sync.md).
import HTTPTypes
import OrderedCollections
import RockpoolCore

extension NotesStore {
    /// The number of changes on one page without `limit`.
    static let pullLimit = 100

    /// `?since=&limit=`: the changes after the cursor, oldest first: `{"changes", "tombstones", "cursor", "hasMore"}`. Without `since` all
    /// notes.
    func pullChanges(for call: Call) -> NotesReply {
        let since: Timestamp
        switch call.request.query(named: "since") {
        case nil: since = .distantPast
        case let text?:
            guard let moment = SyncCursor.moment(from: text) else {
                return .problem(400, about: "malformed", detail: "since is no cursor of this server.")
            }
            since = moment
        }
        let limit = min(max(Int(call.request.query(named: "limit") ?? "") ?? Self.pullLimit, 1), 1000)
        let gone = call.request.query(named: "since") == nil ? [:] : tombstones
        let all =
            notes.values.map { (at: $0.updatedAt, note: Optional($0), id: $0.id) }
            + gone.map { (at: $0.value, note: Note?.none, id: $0.key) }
        let later = all.filter { $0.at > since }.sorted { $0.at < $1.at }
        let page = later.prefix(limit)
        return .json(
            [
                "changes": .array(page.compactMap(\.note?.representation)),
                "tombstones": .array(
                    page.filter { $0.note == nil }.map { ["id": .string($0.id), "deletedAt": .string(RFC3339.format($0.at))] }),
                "cursor": .string(SyncCursor.text(at: page.last?.at ?? max(since, lastChange))),
                "hasMore": .bool(later.count > page.count),
            ], fields: [.cacheControl: "no-store"])
    }

    /// `{"operations": [{"id", "idempotencyKey", "method", "entity", "body", "ifMatch", "baseVersion"}]}`: carries out each in order, like
    /// a separate request, and returns a result for each.
    mutating func pushBatch(for call: Call) -> NotesReply {
        do {
            guard let operations = try call.object()["operations"]?.array else {
                return .problem(422, about: "invalid", detail: "operations is missing")
            }
            guard operations.count <= 1000 else { return .problem(413, about: "too-large", detail: "At most 1000 operations.") }
            let results = operations.map { result(of: $0, for: call) }
            var reply = NotesReply.json(["results": .array(results.map(\.value))])
            reply.hasEffect = results.contains(where: \.hasEffect)
            return reply
        } catch { return error.reply }
    }

    private var lastChange: Timestamp { (notes.values.map(\.updatedAt) + tombstones.values).max() ?? .distantPast }

    private mutating func result(of operation: JSONValue, for call: Call) -> (value: JSONValue, hasEffect: Bool) {
        guard let request = NotesRequest(operation: operation, in: call.request) else {
            return (
                Self.result(of: operation, reply: .problem(400, about: "malformed", detail: "An operation has id, method and entity.")),
                false
            )
        }
        let sequence = journal.arrived(request, now: call.now)
        let reply = carried(request, operation: operation, now: call.now)
        if reply.hasEffect { journal.took(effect: sequence, key: request.idempotencyKey) }
        journal.ended(sequence, with: .answered(reply.status))
        return (Self.result(of: operation, reply: reply), reply.hasEffect)
    }

    private mutating func carried(_ request: NotesRequest, operation: JSONValue, now: Timestamp) -> NotesReply {
        let key = settings.honoursKeys && !interference.ignoresKeys ? request.idempotencyKey : nil
        if let key {
            switch keys.begin(key, for: request, now: now, forgetsAfter: interference.forgetsKeysAfter) {
            case .new: break
            case .running: return .keyInProgress
            case .reused: return .problem(422, about: "key-reused", detail: "This Idempotency-Key was used with another request.")
            case .answered(var first):
                first.hasEffect = false
                return first
            }
        }
        let reply = conflict(of: request, operation: operation) ?? respond(to: request, now: now)
        if let key { keys.finish(key, with: reply) }
        return reply
    }

    /// Returns 409 with the server's note if the operation is based on another version of it.
    private func conflict(of request: NotesRequest, operation: JSONValue) -> NotesReply? {
        let segments = request.path.split(separator: "/")
        guard segments.count == 3, segments[1] == "notes", let note = notes[String(segments[2])] else { return nil }
        let isOtherTag = request.fields[.ifMatch].map { !EntityTags($0).strongly(match: note.etag) } ?? false
        let isOtherVersion = operation["baseVersion"].map { $0 != .number(JSONNumber(note.version)) } ?? false
        guard isOtherTag || isOtherVersion else { return nil }
        return .json(note.representation, status: 409, fields: [.eTag: note.etag])
    }

    private static func result(of operation: JSONValue, reply: NotesReply) -> JSONValue {
        var headers = JSONObject()
        for (name, field) in [("ETag", HTTPField.Name.eTag), ("Location", .location)] {
            headers[name] = reply.fields[field].map { .string($0) }
        }
        return [
            "id": operation["id"] ?? .null, "status": .number(JSONNumber(Int64(reply.status))), "headers": .object(headers),
            "body": (try? JSONValue.parse(reply.body)) ?? .null,
        ]
    }
}

extension NotesRequest {
    /// Converts one operation of a batch into a request; nil if it does not apply to notes.
    fileprivate init?(operation: JSONValue, in batch: NotesRequest) {
        guard operation["id"]?.string != nil, let target = operation["entity"]?.string, target.hasPrefix("/v1/notes"),
            let method = operation["method"]?.string.flatMap({ HTTPRequest.Method($0) })
        else { return nil }
        self.init(method: method, target: target, body: operation["body"]?.serialized() ?? [])
        fields[.authorization] = batch.fields[.authorization]
        fields[.contentType] = operation["contentType"]?.string ?? "application/json"
        fields[.ifMatch] = operation["ifMatch"]?.string
        fields[.ifNoneMatch] = operation["ifNoneMatch"]?.string
        if let key = operation["idempotencyKey"]?.string {
            fields.set(IdempotencyKey.fieldValue(key, format: .quoted), for: "Idempotency-Key")
        }
    }
}

/// The cursor of a pull; opaque to clients.
private enum SyncCursor {
    static func text(at moment: Timestamp) -> String { "n" + String(moment.milliseconds, radix: 36) }

    static func moment(from text: String) -> Timestamp? {
        text.first == "n" ? Int64(text.dropFirst(), radix: 36).map { Timestamp(milliseconds: $0) } : nil
    }
}
