// Conflicts as JSON, and the parsed decision of a user (docs/reference/admin-api.md#conflicts).
import RockpoolCore
import Testing

@Suite struct ConflictDocumentTests {
    private func conflict() -> Conflict {
        Conflict(
            id: "c1", operation: "op1", sequence: 7, upstream: "notes", url: "http://api.test/notes/1", entity: "/notes/1", kind: .editEdit,
            strategy: .fieldMerge, detection: .weak, base: side(#"{"n": 1.50}"#), mine: side("plain"), theirs: side(bytes: [0xFF, 0xFE]),
            result: nil,
            fields: [
                MergedField(
                    pointer: JSONPointer(tokens: ["a/b"]), base: 1, mine: .null, theirs: nil, merged: ["x"], isConflicting: true)
            ],
            openedAt: Timestamp(milliseconds: 1_800_000_000_250))
    }

    private func side(_ text: String) -> Conflict.Side { side(bytes: Array(text.utf8)) }
    private func side(bytes: [UInt8]) -> Conflict.Side { Conflict.Side(body: bytes, contentType: "application/json", etag: "\"7\"") }

    @Test func everyMemberOfTheContract() {
        let names = [
            "id", "operation", "upstream", "url", "entity", "kind", "strategy", "base", "mine", "theirs", "merged", "fields", "detection",
            "openedAt", "closedAt", "resolution", "decidedBy", "seen",
        ]
        #expect(ConflictDocument.json(of: conflict()).object.map { Set($0.names) } == Set(names))
        let left = ConflictDocument.summary(of: conflict()).object.map { Set(names).subtracting($0.names) }
        #expect(left == ["base", "mine", "theirs", "merged", "fields", "seen"])
    }

    /// JSON is embedded as it is, digit for digit; other text as a string; other bytes and absent sides as null.
    @Test func sidesAreBare() {
        let document = ConflictDocument.json(of: conflict())
        #expect(document["base"]?.serialized() == Array(#"{"n":1.50}"#.utf8))
        #expect(document["mine"] == "plain" && document["theirs"] == .null && document["merged"] == .null)
        #expect(
            document["fields"] == [
                ["pointer": "/a~1b", "base": 1, "mine": .null, "theirs": .null, "merged": ["x"], "conflicting": true]
            ])
    }

    @Test func whatStandsAndWhen() {
        var conflict = conflict()
        var document = ConflictDocument.summary(of: conflict)
        #expect(document["openedAt"] == "2027-01-15T08:00:00.250Z" && document["closedAt"] == .null)
        #expect(document["resolution"] == .null && document["decidedBy"] == .null)
        #expect(document["operation"] == "op1" && document["kind"] == "edit-edit" && document["detection"] == "weak")
        (conflict.closedAt, conflict.resolution, conflict.decidedBy) = (conflict.openedAt, .both, .person)
        document = ConflictDocument.summary(of: conflict)
        #expect(document["closedAt"] == document["openedAt"] && document["resolution"] == "both" && document["decidedBy"] == "person")
    }

    @Test(
        arguments: [
            (["resolution": "mine"], .mine, nil), (["resolution": "theirs", "merged": .null], .theirs, nil),
            (["merged": ["n": 1], "resolution": "merged"], .merged, ["n": 1]), (["resolution": "merged"], .merged, nil),
        ] as [(JSONValue, Conflict.Resolution, JSONValue?)])
    func aChoiceIsRead(_ document: JSONValue, _ resolution: Conflict.Resolution, _ merged: JSONValue?) throws {
        let choice = try ConflictChoice(document.object ?? JSONObject())
        #expect(choice.resolution == resolution && choice.merged == merged)
    }

    @Test(
        arguments: [
            ([:], "resolution is mine, theirs, both, merged"), (["resolution": "yours"], "resolution is"),
            (["resolution": 1], "resolution is"),
            (["resolution": "mine", "merge": ["n": 1]], "unknown member merge"),
            (["resolution": "mine", "merged": ["n": 1]], "merged goes with"),
        ] as [(JSONValue, String)])
    func whatIsNoChoiceIsNamed(_ document: JSONValue, _ words: String) throws {
        let refusal = try #require(throws: Refusal.self) { try ConflictChoice(document.object ?? JSONObject()) }
        #expect(refusal.status == 422 && refusal.detail.contains(words), "\(refusal.detail)")
    }
}
