// A client alone is never in conflict with itself, and never has a write accepted that cannot be delivered
// (docs/outbox.md#effects, docs/outbox.md#reads).
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)), .serialized) struct OwnConflictTests {
    /// A gateway that answers 504 may have lost its origin after the write took effect: then the version that its client has seen is not
    /// known any more.
    @Test(arguments: ["PATCH", "PUT"], [500, 504])
    func theNextWriteAfterAFailureIsUnconditional(_ method: String, _ status: Int) async throws {
        try await Story.with(Setting()) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            story.api.failNext(method, with: status)
            let body = { (title: String) in Story.base.merging(["title": .string(title)]) }
            try await #expect(story.device.gateway.send(method, "/v1/notes/1", body("one")).status == status)
            for title in ["two", "three"] {
                let answer = try await story.write(method, "/v1/notes/1", body(title))
                #expect(answer.status == 200, "\(answer.status) \(answer.head)")
            }
            #expect(story.api.notes["1"]?["title"] == "three")
        }
    }

    /// Applications read their list again after a failed save. The copy from before is what the lost create is recognised by.
    @Test(arguments: Setting.promises) func aListReadAgainDoesNotHideALostCreate(_ promise: String) async throws {
        let unkeyed: JSONValue = ["idempotency": ["honoured": "no", "max_processing": "2s"]]
        try await Story.with(Setting(caching: .noValidator, promise: promise), upstream: unkeyed) { story in
            try await #expect(story.get("/v1/notes").status == 200)
            story.api.loseNext("POST")
            let answer = try await story.write("POST", "/v1/notes", Story.base.merging(["title": "lost"]))
            let id = try #require(answer.head["rockpool-operation"])
            try await #expect(story.get("/v1/notes").status == 200)
            let ended = try await story.device.server.operation(id, reaching: "delivered")
            #expect(ended["reason"] == "probed", "\(ended)")
            try await #expect(story.get("/v1/notes").json?.array?.count == 4)
            #expect(story.api.notes.count == 4)
        }
    }

    /// The API would answer 404, as the client's own reads do.
    @Test(arguments: Setting.promises) func aPatchOfWhatItsClientHasDeletedIsRefused(_ promise: String) async throws {
        try await Story.with(Setting(promise: promise)) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            try await story.write("DELETE", "/v1/notes/1")
            let patch = { try await story.device.gateway.send("PATCH", "/v1/notes/1", ["title": "late"]) }
            let refused = try await patch()
            #expect(refused.status == 404 && refused.text.contains("was deleted"), "\(refused.status) \(refused.text)")
            // The effect of an action is not known, so the item stays away, as in its list.
            try await story.write("POST", "/v1/notes/1/toggle")
            try await #expect(story.get("/v1/notes/1").status == 404)
            // A PUT may create it.
            try await story.write("PUT", "/v1/notes/1", Story.base)
            try await #expect((200...299).contains(patch().status))
        }
    }

    /// An action between two writes leaves the tag of the state before it as old as it was.
    @Test func aTagFromBeforeAnActionIsOld() async throws {
        try await Story.with(Setting(promise: "optimistic"), resource: ["conflict": "server-wins"]) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            let tag = try await story.write("PATCH", "/v1/notes/1", ["title": "one"]).head["etag"] ?? "none"
            try await story.write("PATCH", "/v1/notes/1", ["status": "closed"])
            try await story.write("POST", "/v1/notes/1/toggle")
            let old = try await story.device.gateway.send("PATCH", "/v1/notes/1", ["title": "two"], fields: ["If-Match: \(tag)"])
            #expect(old.status == 412, "\(old.status) \(old.text)")
            try await story.write("PATCH", "/v1/notes/1", ["count": 6])
            try await story.comeBack()
            try await #expect(story.conflicts().isEmpty)
            let note = story.api.notes["1"]
            #expect(note?["title"] == "one" && note?["status"] == "closed" && note?["count"] == 6, "\(note ?? .null)")
        }
    }

    /// A delivery is recorded a moment before the copies show its effect: a read in between has it all the same, or says that it lacks it.
    @Test(.timeLimit(.minutes(2))) func noReadWhileAnActionIsDeliveredLacksIt() async throws {
        try await Story.with(Setting(caching: .maxAge, answers: .nothing)) { story in
            for round in 1...12 {
                try await #expect(story.get("/v1/notes").status == 200)
                try await story.device.network("offline")
                try await story.write("POST", "/v1/notes/1/toggle")
                try await story.device.network("auto")
                var isShown = false
                try await eventually("the list shows the action") {
                    for path in ["/v1/notes", "/v1/notes/1"] {
                        let read = try await story.get(path)
                        let note = path == "/v1/notes" ? read.json?.array?.first { $0["id"] == "1" } : read.json
                        isShown = note?["done"] == .bool(round % 2 == 1)
                        #expect(isShown || read.head["rockpool-dirty"] == "1", "\(round): \(path) \(read.head) \(read.text)")
                    }
                    return isShown && story.api.notes["1"]?["done"] == .bool(round % 2 == 1)
                }
            }
        }
    }

    /// A create that is repeated under its key, because its answer was lost, gets the same id again, in the body too.
    @Test func aRepeatedCreateHasOneLocalID() async throws {
        try await Story.with(Setting(promise: "optimistic")) { story in
            try await #expect(story.get("/v1/notes").status == 200)
            try await story.device.network("offline")
            let create = { try await story.write("POST", "/v1/notes", Story.base, fields: ["Idempotency-Key: \"one\""]) }
            let (first, second) = (try await create(), try await create())
            let id = try #require(first.head["rockpool-local-id"])
            #expect(first.json?["id"]?.string == id && second.json?["id"]?.string == id, "\(first.text) \(second.text)")
            #expect(second.head["rockpool-local-id"] == id)
        }
    }

    /// Write-only clients, such as sensors, have seen no state: the answer to the write before is what their next one builds on.
    @Test func clientsThatNeverReadDoNotMeetEachOther() async throws {
        try await Story.with(Setting(), upstream: ["order": "global"]) { story in
            try await story.device.network("offline")
            for round in ["1", "2"] {
                for (user, member) in [("a", "title"), ("b", "status")] {
                    let patch: JSONValue = [member: .string(user + round)]
                    try await story.write("PATCH", "/v1/notes/1", patch, fields: ["Authorization: Bearer \(user)"])
                }
            }
            try await story.comeBack()
            try await eventually("no conflict waits") { try await story.device.items("/v1/conflicts?state=open").isEmpty }
            let note = story.api.notes["1"]
            #expect(note?["title"] == "a2" && note?["status"] == "b2", "\(note ?? .null)")
        }
    }

    /// An upstream that is back limits the rate for a moment: one refused read beside an action is tried again.
    @Test(arguments: [429, 500]) func aRefusedReadBesideAnActionIsTriedAgain(_ status: Int) async throws {
        try await Story.with(Setting(), resource: ["conflict": "server-wins"]) { story in
            try await #expect(story.get("/v1/notes/1").status == 200)
            try await story.device.network("offline")
            try await story.write("POST", "/v1/notes/1/toggle")
            try await story.write("PATCH", "/v1/notes/1", ["title": "mine"])
            try await story.write("PATCH", "/v1/notes/1", ["count": 6])
            story.api.failNext("GET", with: status)
            try await story.comeBack()
            let note = story.api.notes["1"]
            #expect(note?["title"] == "mine" && note?["count"] == 6 && note?["done"] == true, "\(note ?? .null)")
        }
    }

    /// An answer without a representation says nothing of the state that the next write builds on: it is compared with what the client has seen.
    @Test func aChangeBetweenTwoWritesOfAClientIsMerged() async throws {
        let state = OneNote()
        try await PlayedWorld.with(upstream: Self.squashing.merging(["queue": ["squash": "off"]]), { state.answer($0) }) { world in
            let json = ["Content-Type: application/json"]
            try await #expect(world.get("/notes/1").status == 200)
            try await world.turn("offline")
            _ = try await world.send("PATCH", "/notes/1", fields: json, body: #"{"b": 1}"#)
            _ = try await world.send("PUT", "/notes/1", fields: json, body: #"{"id": "1", "a": 0, "b": 2}"#)
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            #expect(state.note["a"] == 1 && state.note["b"] == 2, "\(state.note)")
        }
    }

    /// An API with one note and without versions: as soon as it has taken a PATCH, another client changes a member.
    private final class OneNote: Sendable {
        private let state = Mutex<JSONValue>(["id": "1", "a": 0, "b": 0])

        var note: JSONValue { state.withLock(\.self) }

        func answer(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
            let body = try? JSONValue.parse(Array(asked.body.utf8))
            return state.withLock { note in
                switch asked.method {
                case "GET": return .text(String(decoding: note.serialized(), as: UTF8.self), "Content-Type: application/json")
                case "PATCH": note = note.merging(body ?? [:]).merging(["a": 1])
                case "PUT": note = body ?? note
                default: break
                }
                return PlayedSite.Said(status: 204)
            }
        }
    }

    /// Edits of an item that was created away are made on what the API has made of the create: members that it has added are not another
    /// client's.
    @Test func editsOfANewItemDoNotMeetItsDefaults() async throws {
        let note = Mutex<JSONValue?>(nil)
        let play: PlayedSite.Play = { asked in
            let body = try? JSONValue.parse(Array(asked.body.utf8))
            return note.withLock { note in
                switch asked.method {
                case "POST":
                    note = (body ?? [:]).merging(["id": "7", "price": 0, "tag": ""])
                    return .text(
                        String(decoding: (note ?? .null).serialized(), as: UTF8.self), status: 201, "Content-Type: application/json",
                        "Location: /notes/7")
                case "PATCH":
                    note = note?.merging(body ?? [:])
                    return PlayedSite.Said(status: 204)
                default:
                    let shown: JSONValue = asked.path == "/notes" ? .array(note.map { [$0] } ?? []) : note ?? .null
                    return .text(
                        String(decoding: shown.serialized(), as: UTF8.self), status: shown == .null ? 404 : 200,
                        "Content-Type: application/json")
                }
            }
        }
        let resource: JSONValue = ["collection": "/notes", "item": "/notes/{id}", "offline_response": "optimistic"]
        try await PlayedWorld.with(upstream: ["resources": [resource]], play) { world in
            try await #expect(world.send("GET", "/notes").status == 200)
            try await world.turn("offline")
            let json = ["Content-Type: application/json"]
            let created = try await world.send("POST", "/notes", fields: json, body: #"{"title": "new"}"#)
            let place = try #require(created["location"], "\(created.status) \(created.text)")
            for patch in [#"{"price": 5}"#, #"{"tag": "x"}"#, #"{"price": 6}"#] {
                let sent = try await world.send("PATCH", place, fields: json, body: patch)
                #expect((200...204).contains(sent.status), "\(sent.text)")
            }
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            let wanted: JSONValue = ["title": "new", "id": "7", "price": 6, "tag": "x"]
            #expect(note.withLock(\.self) == wanted, "\(note.withLock { "\(String(describing: $0))" })")
        }
    }

    /// A weak tag is no condition (RFC 9110 §13.1.1): an API that does not evaluate it would take the write, and what another client has changed
    /// meanwhile would be lost.
    @Test func aWeakTagNeverBecomesACondition() async throws {
        let play: PlayedSite.Play = { asked in
            asked.method == "GET"
                ? .text(#"{"id": "1", "a": 0, "b": 0}"#, "Content-Type: application/json", "ETag: W/\"1\"") : PlayedSite.Said(status: 204)
        }
        try await PlayedWorld.with(upstream: Self.squashing.merging(["queue": ["squash": "off"]]), play) { world in
            _ = try await world.get("/notes/1")
            try await world.turn("offline")
            let json = ["Content-Type: application/json"]
            _ = try await world.send("PATCH", "/notes/1", fields: json, body: #"{"b": 1}"#)
            let tag = try await world.get("/notes/1")["etag"] ?? "none"
            #expect(tag.contains("loc-"))
            let put = try await world.send("PUT", "/notes/1", fields: json + ["If-Match: \(tag)"], body: #"{"a": 0, "b": 2}"#)
            #expect(put.status == 200, "\(put.status) \(put.text)")
            try await world.turn("auto")
            try await eventually("both were sent, or the second met a conflict") {
                try await world.server.get("/v1/operations?state=pending,inflight").json?["items"]?.array?.isEmpty == true
            }
            let conditions = world.site.asked.compactMap { $0["if-match"] }
            #expect(conditions.isEmpty, "\(conditions)")
        }
    }

    /// A create that was squashed with its deletion was never sent, so no later write can reach it.
    @Test func whatWasSquashedAwayIsNotThere() async throws {
        try await PlayedWorld.with(upstream: Self.squashing, { _ in .text("[]", "Content-Type: application/json") }) { world in
            _ = try await world.get("/notes")
            try await world.turn("offline")
            let json = ["Content-Type: application/json"]
            let created = try await world.send("POST", "/notes", fields: json, body: #"{"title": "one"}"#)
            let path = try "/notes/" + #require(created["rockpool-local-id"])
            let (first, list) = (try await world.get(path)["etag"] ?? "none", try await world.get("/notes")["etag"] ?? "none")
            try await #expect(world.send("PATCH", path, fields: json, body: #"{"title": "two"}"#)["rockpool-state"] == "superseded")
            // The create has another content now, and so has the list.
            for (target, old) in [(path, first), ("/notes", list)] {
                let again = try await world.get(target, ["If-None-Match: \(old)"])
                #expect(again.status == 200 && again.text.contains("two"), "\(target) \(old): \(again.status) \(again.text)")
            }
            let stale = try await world.send("PUT", path, fields: json + ["If-Match: \(first)"], body: #"{"title": "old"}"#)
            #expect(stale.status == 412, "\(stale.status)")
            try await #expect(world.send("DELETE", path)["rockpool-state"] == "cancelled")
            for method in ["DELETE", "PATCH", "PUT"] {
                let late = try await world.send(method, path, fields: json, body: method == "DELETE" ? nil : #"{"title": "z"}"#)
                #expect(late.status == 404, "\(method): \(late.status) \(late.text)")
            }
        }
    }

    private static let squashing: JSONValue = [
        "queue": ["squash": "safe"],
        "resources": [["collection": "/notes", "item": "/notes/{id}", "offline_response": "optimistic", "items": ""]],
    ]
}
