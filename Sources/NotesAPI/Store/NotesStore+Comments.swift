// `/v1/notes/{id}/comments`: entities below an entity.
import HTTPTypes
import OrderedCollections
package import RockpoolCore

/// A comment on a note.
package struct Comment: Hashable, Sendable {
    /// Assigned by the server.
    package let id: String
    /// The id of its note.
    package let note: String
    /// The members sent by the client.
    package let members: JSONObject
    /// When the comment was created.
    package let createdAt: Timestamp

    /// The comment as a response body.
    package var representation: JSONValue {
        var all = JSONObject([("id", .string(id)), ("noteId", .string(note))])
        for (name, value) in members where !["id", "noteId", "createdAt"].contains(name) { all[name] = value }
        all["createdAt"] = .string(RFC3339.format(createdAt))
        return .object(all)
    }
}

extension NotesStore {
    func listComments(for call: Call) -> NotesReply {
        guard notes[call.id] != nil else { return .notFound }
        let items = comments[call.id, default: []]
        let fields = validators("\"comments-\(call.id)-\(items.count)\"", modified: items.last?.createdAt)
        return conditional(.json(.array(items.map(\.representation)), fields: fields), for: call)
    }

    mutating func createComment(for call: Call) -> NotesReply {
        guard notes[call.id] != nil else { return .notFound }
        do {
            let comment = Comment(id: newID(), note: call.id, members: try call.object(), createdAt: moment(now: call.now))
            comments[call.id, default: []].append(comment)
            var reply = NotesReply.json(comment.representation, status: 201).changing()
            reply.fields[.location] = "/v1/notes/\(call.id)/comments/\(comment.id)"
            return reply
        } catch { return error.reply }
    }
}
