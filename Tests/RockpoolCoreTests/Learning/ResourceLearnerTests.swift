// docs/outbox.md#learning: what is learned of an API's traffic, what confirms it, and what contradicts it.
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct ResourceLearnerTests {
    private static let list = #"[{"id":1,"text":"a"},{"id":2,"text":"b"}]"#
    private static let tagged: HTTPFields = [.eTag: "\"1\""]

    @Test(
        arguments: [
            // A list alone is no evidence of its items, nor an item of its list.
            ([.get("/notes", list)], []),
            ([.get("/notes/1", #"{"id":1,"text":"a"}"#)], []),
            ([.get("/notes", "[]"), .get("/notes/1", #"{"id":1,"text":"a"}"#)], []),
            // A list and an item of it, in either order.
            ([.get("/notes", list), .get("/notes/1", #"{"id":1,"text":"a"}"#, tagged)], ["/notes /notes/{id}"]),
            ([.get("/notes/2", #"{"id":2,"text":"b"}"#, tagged), .get("/notes", list)], ["/notes /notes/{id}"]),
            ([.get("/notes?page=1", list), .get("/notes/1", #"{"id":1,"text":"a","more":3}"#, tagged)], ["/notes /notes/{id}"]),
            // Not an item: another id, another kind of thing, an id that was not listed.
            ([.get("/notes", list), .get("/notes/1", #"{"id":2,"text":"b"}"#)], []),
            ([.get("/notes", #"[{"id":1,"a":1,"b":2,"c":3}]"#), .get("/notes/1", #"{"id":1,"x":1}"#)], []),
            ([.get("/notes", list), .get("/notes/3", #"{"id":3,"text":"c"}"#)], []),
            // Envelopes, lists within objects, other ids and versions.
            (
                [
                    .get("/notes", #"{"notes":[{"id":1,"text":"a"}],"total":1}"#),
                    .get("/notes/1", #"{"note":{"id":1,"text":"a"}}"#, tagged),
                ],
                ["/notes /notes/{id} items /notes envelope /note"]
            ),
            (
                [.get("/api/v1/notes", #"{"data":{"items":[{"id":1}]}}"#), .get("/api/v1/notes/1", #"{"data":{"id":1}}"#, tagged)],
                ["/api/v1/notes /api/v1/notes/{id} items /data/items envelope /data"]
            ),
            (
                [
                    .get("/notes", #"[{"_id":"5f","rev":1,"updated_at":"2026-01-01T00:00:00Z"}]"#),
                    .get("/notes/5f", #"{"_id":"5f","rev":1,"updated_at":"2026-01-01T00:00:00Z"}"#),
                ], ["/notes /notes/{id} id /_id version /rev updated /updated_at"]
            ),
            // Entries that wrap their objects, and ids beside what writes carry.
            (
                [
                    .get("/notes", #"[{"note":{"id":1,"text":"a"}},{"note":{"id":2,"text":"b"}}]"#),
                    .get("/notes/1", #"{"id":1,"text":"a"}"#, tagged),
                ],
                ["/notes /notes/{id} element /note"]
            ),
            ([.get("/notes", #"[{"a":{"id":1},"b":{"id":5}}]"#), .get("/notes/1", #"{"id":1}"#)], []),
            (
                [
                    .get("/notes", #"[{"id":1,"data":{"text":"a"}}]"#),
                    .post("/notes", #"{"id":3,"data":{"text":"c","at":1}}"#).sending(#"{"text":"c"}"#),
                ], ["/notes /notes/{id} content /data creates"]
            ),
            (
                [
                    .get("/notes", #"[{"id":1,"data":{"text":"a"}}]"#),
                    .post("/notes", #"{"id":3,"data":{"text":"c"}}"#).sending(#"{"data":{"text":"c"}}"#),
                ], ["/notes /notes/{id} creates"]
            ),
            // Paths as APIs have them.
            ([.get("/notes/", list), .get("/notes/1/", #"{"id":1,"text":"a"}"#, tagged)], ["/notes/ /notes/{id}/"]),
            ([.get("/issues.json", list), .get("/issues/1.json", #"{"id":1,"text":"a"}"#, tagged)], ["/issues.json /issues/{id}.json"]),
            (
                [
                    .get("/Notes", #"{"@odata.context":"x","value":[{"ID":1,"Text":"a"}]}"#),
                    .get("/Notes(1)", #"{"@odata.context":"x","ID":1,"Text":"a"}"#, tagged),
                ], ["/Notes /Notes({id}) items /value id /ID"]
            ),
            ([.get("/people", #"[{"key":"a b"}]"#), .get("/people/a%20b", #"{"key":"a b"}"#, tagged)], ["/people /people/{id} id /key"]),
            // A create whose answer shows the new item, by its place or by its members.
            ([.get("/notes", list), .post("/notes", #"{"id":3,"text":"c"}"#)], ["/notes /notes/{id} creates"]),
            ([.post("/notes", #"{"id":1,"text":"a"}"#), .get("/notes", list)], ["/notes /notes/{id} creates"]),
            (
                [.get("/notes", list), .post("/notes", #"{"id":3,"text":"c"}"#, [.location: "https://api.example/notes/3.json"])],
                ["/notes /notes/{id}.json creates"]
            ),
            (
                [.get("/notes", list), .post("/notes", #"{"id":3,"text":"c"}"#, [.location: "https://other.example/n/3"])],
                ["/notes /notes/{id} creates"]
            ),
            ([.get("/notes", list), .post("/notes", #"{"id":3,"text":"c"}"#, [.location: "/jobs/9"])], []),
            // None of another: its members differ, or it only begins something.
            ([.get("/notes", #"[{"id":1,"a":1,"b":2,"c":3}]"#), .post("/notes", #"{"id":7,"status":"queued"}"#)], []),
            ([.get("/notes", list), .post("/notes", #"{"id":3,"text":"c"}"#, status: 202)], []),
            ([.get("/notes", list), .post("/notes", #"[{"id":3,"text":"c"}]"#)], []),
            ([.get("/notes", list), .post("/notes", #"{"id":3,"text":"c"}"#, [.cacheControl: "no-store"])], []),
        ] as [([Traffic], [String])])
    func aShapeCountsWhenAnItemOrACreateConfirmsIt(traffic: [Traffic], known: [String]) {
        #expect(ResourceLearner(traffic).words == known)
    }

    @Test func entriesMayHavePathsOutsideOfTheirLists() {
        let above: [Traffic] = [
            .get("/projects", #"[{"id":4,"n":"x"},{"id":5,"n":"y"}]"#), .get("/projects/4", #"{"id":4,"n":"x"}"#, Self.tagged),
        ]
        let below: [Traffic] = [.get("/projects/4/tasks", #"[{"id":9,"t":"a"}]"#), .get("/tasks/9", #"{"id":9,"t":"a"}"#, Self.tagged)]
        let words = ["/projects /projects/{id}", "/projects/{projects_id}/tasks /tasks/{id}"]
        #expect(ResourceLearner(above + below).words == words)
        // Until it is known what is above the list, an entry's path would tell nothing.
        #expect(ResourceLearner(below).words == [])
        #expect(ResourceLearner(below + above).words == words)
        // A list of all entries is theirs.
        let all = Traffic.get("/tasks", #"[{"id":9,"t":"a"},{"id":10,"t":"b"}]"#)
        #expect(ResourceLearner(above + [all] + below).words == ["/projects /projects/{id}", "/tasks /tasks/{id}"])
    }

    @Test func whatTheApiMakesOfNewEntriesIsLearned() {
        let list = #"[{"id":1,"url":"https://api.example/notes/1","at":"/1/1"},{"id":2,"url":"https://api.example/notes/2","at":"/2/2"}]"#
        let time = "2026-11-30T02:40:54.952739+00:00"
        let made = #"{"id":3,"text":"c","url":"https://api.example/notes/3","at":"/3/3","created_at":"\#(time)","rank":4"#
        let date: HTTPFields = [.date: "Mon, 30 Nov 2026 02:40:54 GMT"]
        var learner = ResourceLearner([
            .get("/notes", list), .post("/notes", made + #","seen":"2020-01-01T00:00:00Z"}"#, date).sending(#"{"text":"c"}"#),
        ])
        let forms: [String: MadeMember] = [
            "url": .link("https://api.example/notes/{id}"), "created_at": .time(digits: 6, offset: "+00:00"),
        ]
        #expect(learner.resources.first?.learned?.made == forms)
        #expect(ResourceLearner(json: learner.json).resources == learner.resources)
        // An entry whose link has another form.
        _ = learner.note(.get("/notes", #"[{"id":1,"url":"https://api.example/notes/1"},{"id":2,"url":"https://other.example/notes/2"}]"#))
        #expect(learner.resources.first?.learned?.made.keys.sorted() == ["created_at"])
    }

    @Test func whatIsNotStoredIsReportedOnceWithItsEntries() {
        var learner = ResourceLearner()
        for path in ["/notes/1", "/notes", "/notes/2", "/me"] { _ = learner.noteUnstored(path) }
        #expect(learner.report.map(\.path) == ["/notes", "/me"])
        #expect(learner.report.first?.missing?.contains(#"match: "/notes/**""#) == true)
        #expect(learner.report.last?.missing?.contains(#"match: "/me""#) == true)
    }

    @Test func listsBelowItemsThatEndInASlashAreOfAllItems() {
        let learner = ResourceLearner([
            .get("/projects/", #"[{"id":4,"n":"x"}]"#), .get("/projects/4/", #"{"id":4,"n":"x"}"#, Self.tagged),
            .get("/projects/4/tasks/", #"[{"id":9,"t":"a"}]"#), .get("/projects/4/tasks/9/", #"{"id":9,"t":"a"}"#, Self.tagged),
        ])
        #expect(learner.words == ["/projects/ /projects/{id}/", "/projects/{projects_id}/tasks/ /projects/{projects_id}/tasks/{id}/"])
    }

    @Test(
        arguments: [
            (
                "application/vnd.api+json", #"{"data":[{"type":"n","id":"1"}],"included":[{"id":"9"}]}"#,
                #"{"data":{"type":"n","id":"1"}}"#,
                "/notes /notes/{id} items /data envelope /data jsonapi"
            ),
            (
                "application/fhir+json", #"{"resourceType":"Bundle","id":"b","entry":[{"resource":{"id":"1","active":true}}]}"#,
                #"{"id":"1","active":true}"#, "/notes /notes/{id} items /entry element /resource fhir"
            ),
            (
                "application/hal+json", #"{"_embedded":{"notes":[{"id":1,"text":"a"}]},"_links":{}}"#, #"{"id":1,"text":"a","_links":{}}"#,
                "/notes /notes/{id} items /_embedded/notes hal"
            ),
        ])
    func formatsAreToldByTheirMediaType(type: String, list: String, item: String, known: String) {
        let fields: HTTPFields = [.contentType: type, .eTag: "\"1\""]
        #expect(ResourceLearner([.get("/notes", list, fields), .get("/notes/1", item, fields)]).words == [known])
    }

    @Test func evidenceOfOneIdentityNeverCompletesAnothers() {
        var learner = ResourceLearner([.get("/notes", Self.list, owner: "anna"), .get("/notes/1", #"{"id":1,"text":"a"}"#, owner: "bert")])
        #expect(learner.words.isEmpty)
        #expect(learner.note(.post("/notes", #"{"id":3,"text":"c"}"#, owner: "bert")).isEmpty)
        #expect(learner.note(.get("/notes/1", #"{"id":1,"text":"a"}"#, owner: "anna")) == [.learned("/notes")])
        let changedByBert = learner.forget(owner: "bert")
        #expect(!changedByBert)
        #expect(learner.words.count == 1)
        let changedByAnna = learner.forget(owner: "anna")
        #expect(changedByAnna)
        #expect(learner.words.isEmpty)
    }

    @Test(arguments: ["", "anna"])
    func answersThatAllShareAreEvidenceWithAnyones(owner: String) {
        let item = Traffic.get("/notes/1", #"{"id":1,"text":"a"}"#, owner: owner.isEmpty ? "anna" : "")
        #expect(ResourceLearner([.get("/notes", Self.list, owner: owner), item]).words.count == 1)
        #expect(ResourceLearner([item, .get("/notes", Self.list, owner: owner)]).words.count == 1)
    }

    private static let notes: [Traffic] = [.get("/notes", list), .get("/notes/1", #"{"id":1,"text":"a"}"#, tagged)]

    @Test(
        arguments: [
            // As it was learned: no contradiction.
            (.get("/notes", "[]"), false), (.get("/notes/9", #"{"id":9,"text":"z"}"#), false),
            (.get("/notes", #"[{"id":4}]"#), false), (.get("/notes/1", "{}", status: 404), false),
            (.get("/notes?count=true", #"{"count":2}"#), false), (.get("/other", #"{"count":2}"#), false),
            (.get("/notes", #"{"_embedded":{}}"#, [.contentType: "application/hal+json"]), false),
            // Contradictions.
            (.get("/notes", #"{"error":"no"}"#), true), (.get("/notes", #"{"data":[]}"#), true), (.get("/notes", "[1,2]"), true),
            (.get("/notes", #"[{"id":1},{"id":1}]"#), true), (.get("/notes", #"[{"name":"x"}]"#), true),
            (.get("/notes/1", #"{"id":2,"text":"a"}"#), true), (.get("/notes/1", "[]"), true), (.get("/notes/7", #"{"text":"a"}"#), true),
            (.get("/notes/1", #"{"note":{"id":1}}"#), true),
        ] as [(Traffic, Bool)])
    func theFirstContradictionWithdrawsIt(traffic: Traffic, contradicts: Bool) {
        var learner = ResourceLearner(Self.notes)
        let changes = learner.note(traffic)
        #expect(learner.words.isEmpty == contradicts, "\(changes)")
        guard contradicts else { return }
        #expect(changes.contains { if case .withdrawn("/notes", _) = $0 { true } else { false } })
        #expect(learner.report.first?.state == .withdrawn)
    }

    @Test func whatWasWithdrawnNeedsMoreEvidenceAndIsGivenUpAtLast() {
        var learner = ResourceLearner()
        for round in 0..<ResourceLearner.withdrawalLimit {
            var needed = 0
            _ = learner.note(Self.notes[0])
            while learner.resources.isEmpty, needed < 20 {
                _ = learner.note(Self.notes[1])
                needed += 1
            }
            #expect(needed == 2 * round + 1)
            _ = learner.note(.get("/notes", "{}"))
            #expect(learner.resources.isEmpty)
        }
        for _ in 0..<20 { for one in Self.notes { _ = learner.note(one) } }
        #expect(learner.resources.isEmpty)
        #expect(learner.report.first { $0.state == .withdrawn }?.missing != nil)
        #expect(learner.forget("/notes") == 0)
        for one in Self.notes { _ = learner.note(one) }
        #expect(learner.words.count == 1)
    }

    @Test func aPostThatMakesNothingIsNoCreate() {
        var learner = ResourceLearner(Self.notes)
        #expect(learner.resources[0].learned?.isCreating == false)
        #expect(learner.note(.post("/notes", #"{"id":3,"text":"c"}"#)) == [.extended("/notes")])
        #expect(learner.resources[0].learned?.isCreating == true)
        #expect(learner.note(.post("/notes", #"{"ok":true}"#, status: 200)) == [.extended("/notes")])
        #expect(learner.resources[0].learned?.isCreating == false)
        #expect(learner.note(.post("/notes", #"{"id":4,"text":"d"}"#)).isEmpty)
        #expect(learner.resources[0].learned?.isCreating == false)
    }

    @Test func pathsBelowACollectionThatAreNoItemsAreTold() {
        let slugs: [Traffic] = [.get("/notes", #"[{"slug":"one","text":"a"}]"#), .get("/notes/one", #"{"slug":"one","text":"a"}"#)]
        var learner = ResourceLearner(slugs)
        _ = learner.note(.get("/notes/search", #"{"hits":3}"#))
        #expect(learner.resources[0].learned?.others == ["search"])
        for n in 1..<LearnedShape.othersLimit { _ = learner.note(.get("/notes/page\(n)", #"{"hits":3}"#)) }
        #expect(!learner.resources.isEmpty)
        _ = learner.note(.get("/notes/one-more", #"{"hits":3}"#))
        #expect(learner.resources.isEmpty)
    }

    @Test func pathsBelowAnItemHoldForAllItems() {
        var learner = ResourceLearner([
            .get("/projects/1/tasks", #"[{"id":7,"t":"a"}]"#), .get("/projects/1/tasks/7", #"{"id":7,"t":"a"}"#, Self.tagged),
        ])
        #expect(learner.words == ["/projects/1/tasks /projects/1/tasks/{id}"])
        _ = learner.note(.get("/projects", #"[{"id":1,"n":"p"}]"#))
        _ = learner.note(.get("/projects/1", #"{"id":1,"n":"p"}"#, Self.tagged))
        #expect(
            learner.words == ["/projects /projects/{id}", "/projects/{projects_id}/tasks /projects/{projects_id}/tasks/{id}"])
        // Another project's tasks are known, and can contradict.
        _ = learner.note(.post("/projects/2/tasks", #"{"id":8,"t":"b"}"#))
        #expect(learner.words.last?.hasSuffix("creates") == true)
        _ = learner.note(.get("/projects/2/tasks", #"{"tasks":[]}"#))
        #expect(learner.words == ["/projects /projects/{id}"])
    }

    @Test func itIsKeptOverARestart() throws {
        let learner = ResourceLearner(Self.notes + [.post("/notes", #"{"id":3,"text":"c"}"#), .get("/tags", #"[{"id":1}]"#)])
        let again = ResourceLearner(json: try JSONValue.parse(learner.json.serialized()))
        #expect(again.words == learner.words && again.words == ["/notes /notes/{id} creates"])
        #expect(again.open.isEmpty && learner.open.map(\.path) == ["/tags"])
        #expect(ResourceLearner(json: "nothing").words.isEmpty)
        #expect(ResourceLearner(json: ["shapes": [["collection": "/{x}"], 1]]).words.isEmpty)
    }

    @Test func theReportSaysWhatIsMissing() {
        var learner = ResourceLearner(Self.notes + [.get("/tags", #"[{"id":1}]"#)])
        let (first, again) = (learner.noteUnstored("/secrets?x=1"), learner.noteUnstored("/secrets"))
        #expect(first && !again)
        let report = learner.report
        #expect(report.map(\.state) == [.learned, .open, .unstored])
        #expect(report.map(\.path) == ["/notes", "/tags", "/secrets"])
        #expect(report[0].reason == "1 list, 1 entry" && report[0].missing?.contains("create") == true)
        #expect(report[2].missing?.contains("store: always") == true)
        _ = learner.note(.post("/notes", #"{"id":3,"text":"c"}"#))
        #expect(learner.report[0].missing == nil && learner.report[0].reason == "1 list, 1 entry, 1 create")
    }
}
