// `/v1/notes` and `/v1/notes/{id}`: reads with validators, writes with preconditions (RFC 9110 §8.8, §13; RFC 7396).
import HTTPTypes
import OrderedCollections
import RockpoolCore

extension NotesStore {
    /// Lists all notes, or with `updatedAfter` the notes changed later and the tombstones of those deleted later; `status` and `tag`
    /// filter.
    mutating func listNotes(for call: Call) -> NotesReply {
        var since: Timestamp?
        if let cursor = call.request.query(named: "updatedAfter") {
            since = Int64(cursor).map { Timestamp(milliseconds: $0) } ?? RFC3339.parse(cursor)
            guard since != nil else {
                return .problem(400, about: "malformed", detail: "updatedAfter is neither RFC 3339 nor milliseconds.")
            }
        }
        let (status, tag) = (call.request.query(named: "status"), call.request.query(named: "tag"))
        var items = notes.values.filter { note in
            since.map { note.updatedAt > $0 } ?? true
                && status.map { note.members["status"]?.string == $0 } ?? true
                && tag.map { note.members["tags"]?.array?.contains(.string($0)) == true } ?? true
        }.map(\.representation)
        if let since {
            items += tombstones.filter { $0.value > since }.map { id, at in
                ["id": .string(id), "deletedAt": .string(RFC3339.format(at))]
            }
        }
        let changed = (notes.values.map(\.updatedAt) + tombstones.values).max()
        return conditional(.json(.array(items), fields: validators("\"notes-\(revision)\"", modified: changed)), for: call)
    }

    mutating func createNote(for call: Call) -> NotesReply {
        do {
            let members = try validated(call.object())
            // Two statements: in one expression `self` is read first, and every create copies all notes.
            let note = addNote(members, now: call.now)
            return created(note)
        } catch { return error.reply }
    }

    func readNote(for call: Call) -> NotesReply {
        notes[call.id].map { conditional(represented($0), for: call) } ?? .notFound
    }

    /// Replaces a note; with `If-None-Match: *` it creates one.
    mutating func putNote(for call: Call) -> NotesReply {
        do {
            let members = try validated(call.object())
            let createsOnly = call.request.fields[.ifNoneMatch].map { EntityTags($0) == .any } ?? false
            if createsOnly, notes[call.id] == nil {
                let isAgain = tombstones.removeValue(forKey: call.id) != nil
                var note = Note(id: call.id, members: members, createdAt: moment(now: call.now))
                // ETags of a deleted note are never reused (RFC 9110 §8.8.1).
                if isAgain { note.version = revision }
                notes[note.id] = note
                return created(note)
            }
            return changeNote(for: call) { _ in members }
        } catch { return error.reply }
    }

    mutating func patchNote(for call: Call) -> NotesReply {
        do {
            let patch = JSONValue.object(try call.object())
            guard let note = notes[call.id] else { return .notFound }
            let members = try validated(JSONValue.object(note.members).merging(patch).object ?? note.members)
            return changeNote(for: call) { _ in members }
        } catch { return error.reply }
    }

    mutating func deleteNote(for call: Call) -> NotesReply {
        guard let note = notes[call.id] else {
            let isAgain = tombstones[call.id] != nil && !interference.deleteAgainIsNotFound
            return isAgain ? NotesReply(status: 204) : .notFound
        }
        if let refusal = refusal(for: call, current: note) { return refusal }
        notes[call.id] = nil
        comments[call.id] = nil
        tombstones[call.id] = moment(now: call.now)
        return NotesReply(status: 204).changing()
    }

    private mutating func changeNote(for call: Call, _ change: (Note) -> JSONObject) -> NotesReply {
        guard var note = notes[call.id] else { return .notFound }
        if let refusal = refusal(for: call, current: note) { return refusal }
        note.replace(change(note), at: moment(now: call.now))
        notes[call.id] = note
        return represented(note).changing()
    }

    /// Evaluates the preconditions of a write on an existing note (RFC 9110 §13.2.2). Nil if they hold.
    private func refusal(for call: Call, current: Note) -> NotesReply? {
        let fields = call.request.fields
        let isRefused =
            fields[.ifMatch].map { !EntityTags($0).strongly(match: sentETag(current.etag)) } ?? false
            || fields[.ifNoneMatch].map { EntityTags($0).weakly(match: current.etag) } ?? false
        guard isRefused else { return nil }
        return .problem(412, about: "precondition-failed", detail: "The note is at another version.", fields: [.eTag: current.etag])
    }

    /// The validator as sent to clients: weak while that fault is in force.
    private func sentETag(_ etag: String) -> String { interference.weakensETags ? "W/" + etag : etag }

    private func validated(_ members: JSONObject) throws(Complaint) -> JSONObject {
        if let complaint = Note.complaint(about: members) { throw Complaint(reply: .problem(422, about: "invalid", detail: complaint)) }
        return members
    }

    private func represented(_ note: Note, status: Int = 200) -> NotesReply {
        .json(note.representation, status: status, fields: validators(note.etag, modified: note.updatedAt))
    }

    private func created(_ note: Note) -> NotesReply {
        var reply = represented(note, status: 201).changing()
        reply.fields[.location] = "/v1/notes/\(note.id)"
        return reply
    }

    /// The fields of a read: validators and the configured `Cache-Control`.
    func validators(_ etag: String, modified: Timestamp?) -> HTTPFields {
        var fields: HTTPFields = [.eTag: etag]
        fields[.lastModified] = modified.map { HTTPDate.format($0) }
        fields[.cacheControl] = settings.cacheControl
        return fields
    }

    /// Returns 304 if the client already holds this representation (RFC 9110 §13.1.2, §13.1.3).
    func conditional(_ reply: NotesReply, for call: Call) -> NotesReply {
        let fields = call.request.fields
        let isUnchanged: Bool
        if let tags = fields[.ifNoneMatch] {
            isUnchanged = reply.fields[.eTag].map { EntityTags(tags).weakly(match: $0) } ?? false
        } else {
            let since = fields[.ifModifiedSince].flatMap { HTTPDate.parse($0) }
            let modified = reply.fields[.lastModified].flatMap { HTTPDate.parse($0) }
            isUnchanged = since.flatMap { since in modified.map { $0 <= since } } ?? false
        }
        guard isUnchanged else { return reply }
        var notModified = NotesReply(status: 304, fields: reply.fields)
        notModified.fields[.contentType] = nil
        return notModified
    }
}
