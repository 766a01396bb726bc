// The data of the API as JSON, for a program that begins where the one before it ended.
import OrderedCollections
package import RockpoolCore

extension NotesStore {
    /// Everything that requests have changed, besides tokens and idempotency keys.
    package var kept: JSONValue {
        [
            "lastId": .number(JSONNumber(lastID)), "revision": .number(JSONNumber(revision)),
            "lastMoment": .string(RFC3339.format(lastMoment)),
            "notes": .array(notes.values.map(\.representation)),
            "deleted": .array(tombstones.map { id, at in ["id": .string(id), "deletedAt": .string(RFC3339.format(at))] }),
            "comments": .array(notes.keys.flatMap { comments[$0, default: []] }.map(\.representation)),
        ]
    }

    /// A server with the data of an earlier one. Nil if it is none.
    package init?(kept: JSONValue, settings: NotesSettings = NotesSettings()) {
        guard let lastID = kept["lastId"]?.integer, let revision = kept["revision"]?.integer,
            let lastMoment = kept["lastMoment"]?.string.flatMap({ RFC3339.parse($0) }), let notes = kept["notes"]?.array
        else { return nil }
        self.init(settings: settings, lastID: lastID, lastMoment: lastMoment)
        self.revision = revision
        for value in notes {
            guard let note = Note(kept: value) else { return nil }
            self.notes[note.id] = note
        }
        for value in kept["deleted"]?.array ?? [] {
            guard let id = value["id"]?.string, let at = value["deletedAt"]?.string.flatMap({ RFC3339.parse($0) }) else { return nil }
            tombstones[id] = at
        }
        for value in kept["comments"]?.array ?? [] {
            guard let comment = Comment(kept: value) else { return nil }
            comments[comment.note, default: []].append(comment)
        }
    }
}

extension Note {
    fileprivate init?(kept: JSONValue) {
        guard let members = kept.object, let id = kept["id"]?.string, let version = kept["version"]?.integer,
            let createdAt = kept["createdAt"]?.string.flatMap({ RFC3339.parse($0) }),
            let updatedAt = kept["updatedAt"]?.string.flatMap({ RFC3339.parse($0) })
        else { return nil }
        self.init(id: id, members: members, createdAt: createdAt)
        (self.updatedAt, self.version) = (updatedAt, version)
    }
}

extension Comment {
    fileprivate init?(kept: JSONValue) {
        guard let members = kept.object, let id = kept["id"]?.string, let note = kept["noteId"]?.string,
            let createdAt = kept["createdAt"]?.string.flatMap({ RFC3339.parse($0) })
        else { return nil }
        self.init(id: id, note: note, members: members, createdAt: createdAt)
    }
}
