// The notes API as a value: all its data, and one pure function from request to reply. Sockets and faults are around it.
import HTTPTypes
import OrderedCollections
package import RockpoolCore

/// How the API behaves when nothing goes wrong.
package struct NotesSettings: Hashable, Sendable {
    /// Whether it honours `Idempotency-Key`.
    package var honoursKeys: Bool
    /// `Cache-Control` of notes and comments; nil sends none.
    package var cacheControl: String?
    /// Larger bodies are 413.
    package var bodyLimit: ByteCount

    package init(honoursKeys: Bool = true, cacheControl: String? = "no-cache", bodyLimit: ByteCount = .mib(16)) {
        self.honoursKeys = honoursKeys
        self.cacheControl = cacheControl
        self.bodyLimit = bodyLimit
    }
}

/// Everything the server holds.
package struct NotesStore: Sendable {
    /// Fixed for the life of the server.
    package let settings: NotesSettings
    /// In force until changed; counters among them count down.
    package var faults = Faults()
    /// By id, in order of creation.
    var notes: OrderedDictionary<String, Note> = [:]
    /// When each deleted note went.
    var tombstones: OrderedDictionary<String, Timestamp> = [:]
    /// By id of their note, in order of creation.
    var comments: [String: [Comment]] = [:]
    /// The user of each token that is live.
    var users: [String: String] = [:]
    /// The user of each refresh token that is live.
    var refreshers: [String: String] = [:]
    var keys = KeyLedger()
    var journal = Journal()
    /// Grows with every change: the collection's validator.
    var revision: Int64 = 0
    private var lastID: Int64 = 0
    private var lastMoment = Timestamp.distantPast

    /// A server whose first notes are made of `seed`, objects of client members.
    package init(seed: [JSONValue] = [], settings: NotesSettings = NotesSettings(), now: Timestamp) {
        self.settings = settings
        for value in seed { addNote(value.object ?? JSONObject(), now: now) }
    }

    /// A note by its id.
    package func note(_ id: String) -> Note? { notes[id] }

    /// Carries a request out. No faults, no keys: those are the way there and back (`NotesStore+Intake`).
    package mutating func respond(to request: NotesRequest, now: Timestamp) -> NotesReply {
        switch NotesRoute.find(request) {
        case .found(let route, let parameters):
            if faults.requiresToken, route.isWrite, user(of: request) == nil { return .unauthorized }
            return route.answer(&self, Call(request: request, parameters: parameters, now: now))
        case .wrongMethod(let allowed):
            return .problem(405, "method-not-allowed", "Allowed: \(allowed).", fields: [.allow: allowed])
        case .unknown:
            return .notFound
        }
    }

    /// A moment for a change: later than every one before, so that `updatedAt` orders all changes.
    mutating func moment(_ now: Timestamp) -> Timestamp {
        lastMoment = max(now, lastMoment + .milliseconds(1))
        revision += 1
        return lastMoment
    }

    /// An id the server has never given.
    mutating func newID() -> String {
        lastID += 1
        return String(lastID)
    }

    /// Adds a note made of client members.
    @discardableResult
    mutating func addNote(_ members: JSONObject, now: Timestamp) -> Note {
        let note = Note(id: newID(), members: members, createdAt: moment(now))
        notes[note.id] = note
        return note
    }
}

/// A request on its way to a route, with the variable segments of its path.
struct Call {
    let request: NotesRequest
    let parameters: [String]
    let now: Timestamp

    /// The first variable segment.
    var id: String { parameters.first ?? "" }

    /// The body as an object, or why not.
    func object() throws(Complaint) -> JSONObject {
        if let type = request.fields[.contentType], !type.lowercased().contains("json") {
            throw Complaint(reply: .problem(415, "unsupported-media-type", "Send JSON."))
        }
        let value: JSONValue
        do {
            value = try JSONValue.parse(request.body)
        } catch {
            throw Complaint(reply: .problem(400, "malformed", "\(error.problem.rawValue), at byte \(error.offset)"))
        }
        guard let object = value.object else { throw Complaint(reply: .problem(422, "invalid", "An object is expected.")) }
        return object
    }
}

/// A request the API refuses.
struct Complaint: Error {
    let reply: NotesReply
}
