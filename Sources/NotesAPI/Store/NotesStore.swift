// The notes API as a value: its data, and a function from request to response without sockets.
import HTTPTypes
import OrderedCollections
package import RockpoolCore

/// The behaviour of the API.
package struct NotesSettings: Hashable, Sendable {
    /// True if it honours `Idempotency-Key`.
    package var honoursKeys: Bool
    /// `Cache-Control` of notes and comments; nil sends none.
    package var cacheControl: String?
    /// Larger bodies are answered 413.
    package var bodyLimit: ByteCount
    /// Origins of pages that may use the API from a browser; empty answers without CORS fields.
    package var pages: [String]

    package init(
        honoursKeys: Bool = true, cacheControl: String? = "no-cache", bodyLimit: ByteCount = .mib(16), pages: [String] = []
    ) {
        self.honoursKeys = honoursKeys
        self.cacheControl = cacheControl
        self.bodyLimit = bodyLimit
        self.pages = pages
    }
}

/// The complete state of the server.
package struct NotesStore: Sendable {
    /// Fixed for the life of the server.
    package let settings: NotesSettings
    /// In force until changed.
    package var interference: any NotesInterference = NoInterference()
    /// Notes by id, in order of creation.
    var notes: OrderedDictionary<String, Note> = [:]
    /// The deletion time of each deleted note.
    var tombstones: OrderedDictionary<String, Timestamp> = [:]
    /// Comments by the id of their note, in order of creation.
    var comments: [String: [Comment]] = [:]
    /// The user of each valid access token.
    var users: [String: String] = [:]
    /// The user of each valid refresh token.
    var refreshers: [String: String] = [:]
    var keys = KeyLedger()
    var journal = Journal()
    /// Increases with every change: the validator of the collection.
    var revision: Int64 = 0
    private(set) var lastID: Int64 = 0
    private(set) var lastMoment = Timestamp.distantPast

    /// A server with `seed` as its first notes, objects of client members.
    package init(seed: [JSONValue] = [], settings: NotesSettings = NotesSettings(), now: Timestamp) {
        self.settings = settings
        for value in seed { addNote(value.object ?? JSONObject(), now: now) }
    }

    /// A server without notes, that goes on behind the last id and the last change of another one.
    init(settings: NotesSettings, lastID: Int64, lastMoment: Timestamp) {
        (self.settings, self.lastID, self.lastMoment) = (settings, lastID, lastMoment)
    }

    package func note(id: String) -> Note? { notes[id] }

    /// Carries a request out. Interference and keys are applied by the caller (`NotesStore+Intake`).
    package mutating func respond(to request: NotesRequest, now: Timestamp) -> NotesReply {
        let pages = PagePermissions(origins: settings.pages)
        if let preflight = pages.preflight(request) { return preflight }
        var reply = routed(request, now: now)
        pages.permit(&reply, request)
        return reply
    }

    private mutating func routed(_ request: NotesRequest, now: Timestamp) -> NotesReply {
        switch NotesRoute.find(for: request) {
        case .found(let route, let parameters):
            if interference.requiresToken, route.isWrite, user(of: request) == nil { return .unauthorized }
            return route.answer(&self, Call(request: request, parameters: parameters, now: now))
        case .wrongMethod(let allowed):
            return .problem(405, about: "method-not-allowed", detail: "Allowed: \(allowed).", fields: [.allow: allowed])
        case .unknown:
            return .notFound
        }
    }

    /// The time of a change: later than every previous one, so that `updatedAt` orders all changes.
    mutating func moment(now: Timestamp) -> Timestamp {
        lastMoment = max(now, lastMoment + .milliseconds(1))
        revision += 1
        return lastMoment
    }

    /// A new id that the server has never used.
    mutating func newID() -> String {
        lastID += 1
        return String(lastID)
    }

    /// Adds a note with the given client members.
    @discardableResult
    mutating func addNote(_ members: JSONObject, now: Timestamp) -> Note {
        let note = Note(id: newID(), members: members, createdAt: moment(now: now))
        notes[note.id] = note
        return note
    }
}

/// A matched request, with the variable segments of its path.
struct Call {
    let request: NotesRequest
    let parameters: [String]
    let now: Timestamp

    /// The first variable segment.
    var id: String { parameters.first ?? "" }

    /// The body as a JSON object. Throws the refusal if it is not one.
    func object() throws(Complaint) -> JSONObject {
        if let type = request.fields[.contentType], !type.lowercased().contains("json") {
            throw Complaint(reply: .problem(415, about: "unsupported-media-type", detail: "Send JSON."))
        }
        let value: JSONValue
        do {
            value = try JSONValue.parse(request.body)
        } catch {
            throw Complaint(reply: .problem(400, about: "malformed", detail: "\(error.problem.rawValue), at byte \(error.offset)"))
        }
        guard let object = value.object else { throw Complaint(reply: .problem(422, about: "invalid", detail: "An object is expected.")) }
        return object
    }
}

/// A refusal of a request.
struct Complaint: Error {
    let reply: NotesReply
}
