// Issue 5.1: a change of a note is detected however the upstream signals it, and a write without a conflict is not reported as one
// (docs/outbox.md#detection).
import Glibc
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

/// A write that was queued while the other side made its change, and the requests sent afterwards.
struct Detection: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let manner: OneNote.Manner
    var resource: JSONValue = [:]
    var hasSeen = true
    var method = "PATCH"
    var mine: JSONValue = ["title": "mine"]
    /// Nil when the other side has changed nothing.
    var theirs: JSONValue? = ["status": "theirs"]
    var becoming: OneNote.Manner?
    let requests: [String]
    var state = "delivered"
    /// Kind, detection and resolution of the record; nil when no record is expected.
    let record: [String]?
    /// Final title and status.
    var standing = ["mine", "theirs"]

    static let all = [
        Detection(
            testDescription: "409 with the note", manner: .answers409, requests: ["PATCH if \"r1\"", "GET", "PATCH if \"r2\""],
            record: ["edit-edit", "strong", "merged"]),
        Detection(
            testDescription: "428, never seen", manner: .wantsCondition, resource: ["conflict": "client-wins"], hasSeen: false,
            requests: ["PATCH", "GET", "PATCH if \"r2\""], record: ["edit-edit", "strong", "mine"]),
        Detection(
            testDescription: "428, never seen, and nobody to say", manner: .wantsCondition, hasSeen: false, requests: ["PATCH", "GET"],
            state: "conflicted", record: ["edit-edit", "strong", ""], standing: ["base", "theirs"]),
        Detection(
            testDescription: "410", manner: .lax, becoming: .gone, requests: ["GET", "GET"], state: "conflicted",
            record: ["edit-delete", "strong", ""], standing: ["base", "theirs"]),
        Detection(
            testDescription: "weak ETags", manner: .weak, requests: ["GET", "GET", "GET", "PATCH"],
            record: ["edit-edit", "weak", "merged"]),
        Detection(
            testDescription: "weak ETags, unchanged", manner: .weak, theirs: nil, requests: ["GET", "PATCH"], record: nil,
            standing: ["mine", "open"]),
        Detection(
            testDescription: "no ETags", manner: .lax, requests: ["GET", "GET", "GET", "PATCH"], record: ["edit-edit", "weak", "merged"]),
        Detection(
            testDescription: "no ETags, deleted by us", manner: .lax, method: "DELETE", requests: ["GET", "GET"], state: "conflicted",
            record: ["delete-edit", "weak", ""], standing: ["base", "theirs"]),
        Detection(
            testDescription: "a version in the body", manner: .countsRevisions, resource: ["version": "/rev"], method: "PUT",
            mine: ["id": "1", "title": "mine", "status": "open", "rev": 1], requests: ["PUT rev 1", "GET", "PUT rev 2"],
            record: ["edit-edit", "strong", "merged"]),
        Detection(
            testDescription: "a version that the write leaves out", manner: .countsRevisions, resource: ["version": "/rev"],
            requests: ["GET", "GET", "PATCH rev 2"], record: ["edit-edit", "strong", "merged"]),
    ]
}

@Suite(.serialized) struct DetectionTests {
    @Test(arguments: Detection.all) func isFoundOut(_ row: Detection) async throws {
        let api = OneNote(row.manner)
        let listener = try await api.start()
        let device = try await Device.start(api: listener.port, resource: row.resource.merging(["updated_at": .null]))
        if row.hasSeen { try await #expect(device.gateway.send("GET", "/v1/notes/1").status == 200) }
        try await device.network("offline")
        let id = try await device.queue(row.method, "/v1/notes/1", row.method == "DELETE" ? nil : row.mine)
        api.edit(row.theirs, becoming: row.becoming)
        try await device.network("auto")
        try await device.settle()

        #expect(api.log == row.requests)
        let operation = try await device.admin.send("GET", "/v1/operations/\(id)").json
        #expect(operation?["state"]?.string == row.state, "\(operation?["lastError"] ?? .null)")
        #expect([api.note["title"]?.string, api.note["status"]?.string] == row.standing)
        let record = try await device.conflict(of: id)
        let words = record.map { record in ["kind", "detection", "resolution"].map { record[$0]?.string ?? "" } }
        #expect(words == row.record)
        await device.close()
        try await device.server.stop()
        await listener.stop()
    }

    private static let keyless: JSONValue = ["idempotency": ["honoured": "unknown", "max_processing": "1s"]]

    /// Returns the body of a client's change: for a PUT, the note as read with the change applied.
    private func form(_ seen: JSONValue?, _ method: String, _ title: String) -> String? {
        guard method != "DELETE" else { return nil }
        let change: JSONValue = ["title": .string(title)]
        return String(decoding: (method == "PUT" ? (seen ?? [:]).merging(change) : change).serialized(), as: UTF8.self)
    }

    @Test(arguments: ["PUT", "PATCH", "DELETE"]) func onesOwnWriteWhoseAnswerWasLostIsNone(_ method: String) async throws {
        try await World.with(api: NotesSettings(honoursKeys: false), upstream: Self.keyless) { world in
            let seen = try await world.send("GET", "/v1/notes/1").json
            await world.goOffline()
            let id = try await world.queued(method, "/v1/notes/1", body: form(seen, method, "once"))
            world.api.faults.commitThenDrop = 1
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "delivered")
            #expect(world.api.effects() == 1 && world.api.note(id: "1")?.members["title"]?.string == (method == "DELETE" ? nil : "once"))
            // A look finds every member that a PATCH has set.
            try await expectNone(world, unless: method == "PUT")
        }
    }

    @Test(arguments: ["PUT", "PATCH", "DELETE"]) func theSameChangeByBothIsNone(_ method: String) async throws {
        try await World.with { world in
            let seen = try await world.send("GET", "/v1/notes/1").json
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "offline", "upstream": .null]).status == 200)
            let text = form(seen, method, "both")
            let id = try await world.queued(method, "/v1/notes/1", body: text)
            let theirs = try await Curl.send(
                method, "http://127.0.0.1:\(world.api.port)/v1/notes/1", fields: ["Content-Type: application/json"], body: text)
            #expect(theirs.status < 300)
            try await #expect(world.server.change("PUT", "/v1/network", ["mode": "auto", "upstream": .null]).status == 200)
            _ = try await world.server.operation(id, reaching: "delivered")
            try await expectNone(world, unless: method != "DELETE")
        }
    }

    /// - Parameter isListed: true if a member that only the upstream writes and the resource does not declare, here `/version`, makes the
    ///   note differ from the client's write: the delivered write is then listed as a decided conflict, although neither side has lost.
    private func expectNone(_ world: World, unless isListed: Bool) async throws {
        let records = try #require(try await world.server.get("/v1/conflicts?state=all").json?["items"]?.array)
        #expect(records.count == (isListed ? 1 : 0))
        #expect(records.allSatisfy { $0["closedAt"]?.string != nil && $0["resolution"] == .null })
    }

    /// The second write is based on the first, by a client that has not read the result of the first one's merge.
    @Test(arguments: ["PUT", "PATCH"]) func aChainDoesNotUndoWhatItsFirstWasMergedWith(_ method: String) async throws {
        let api = try await NotesServer.start(seed: [["title": "base", "status": "open", "count": 1]])
        let device = try await Device.start(api: api.port, resource: [:])
        _ = try await device.gateway.send("GET", "/v1/notes/1")
        try await device.network("offline")
        var ids: [String] = []
        for change in [["title": "one"], ["title": "two"], ["count": 2]] as [JSONValue] {
            let seen = try await device.gateway.send("GET", "/v1/notes/1")
            let body = method == "PUT" ? (seen.json ?? .null).merging(change) : change
            ids.append(try await device.queue(method, "/v1/notes/1", body, fields: seen.head["etag"].map { ["If-Match: \($0)"] } ?? []))
        }
        #expect(api.edit(note: "1", with: ["status": "theirs"]) != nil)
        try await device.network("auto")
        try await device.settle()
        for id in ids {
            try await #expect(device.admin.send("GET", "/v1/operations/\(id)").json?["state"] == "delivered")
            try await #expect(device.conflict(of: id)?["resolution"] == "merged")
        }
        expectSame(
            api.note(id: "1").map { .object($0.members) },
            ["title": "two", "body": "", "status": "theirs", "tags": [], "count": 2], method)
        await device.close()
        try await device.server.stop()
        await api.stop()
    }

    /// One client that saves one note several times at once is not in conflict with itself.
    @Test func overlappingWritesOfOneClientFollowEachOther() async throws {
        let note = Mutex((text: "{}", revision: 1))
        let play: PlayedSite.Play = { asked in
            // Time for the other writes to arrive.
            if asked.method == "PUT" { usleep(150_000) }
            return note.withLock { note in
                if let condition = asked["if-match"], condition != "\"r\(note.revision)\"" { return .text("", status: 412) }
                if asked.method == "PUT" { note = (asked.body, note.revision + 1) }
                return .text(note.text, "Content-Type: application/json", "ETag: \"r\(note.revision)\"")
            }
        }
        let upstream: JSONValue = ["resources": [["collection": "/notes", "item": "/notes/{id}"]]]
        try await PlayedWorld.with(upstream: upstream, play) { world in
            try await #expect(world.get("/notes/1").status == 200)
            let json = ["Content-Type: application/json"]
            let states = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 1...3 {
                    group.addTask { try await world.send("PUT", "/notes/1", fields: json, body: "{\"v\":\(number)}").status }
                }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            #expect(states == [200, 200, 200])
            try await #expect(world.server.get("/v1/operations").json?["items"]?.array?.isEmpty == true)
            try await #expect(world.get("/notes/1").text == note.withLock { $0.text })
            #expect(note.withLock { $0.revision } == 4)
            // A write that its client gave up has taken effect all the same.
            let givenUp = try await world.send("PUT", "/notes/1", fields: json, body: #"{"v":4}"#, options: ["--max-time", "0.05"])
            #expect(givenUp.exit == 28)
            try await #expect(world.send("PUT", "/notes/1", fields: json, body: #"{"v":5}"#).status == 200)
            try await #expect(world.server.get("/v1/operations").json?["items"]?.array?.isEmpty == true)
            #expect(note.withLock { $0.revision } == 6)
        }
    }
}
