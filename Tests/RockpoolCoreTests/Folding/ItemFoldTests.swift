// One item with the client's own writes folded in (docs/outbox.md#reads).
import HTTPTypes
import RockpoolCore
import Testing

private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }
private func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

/// Returns an outcome in one line: its kind, the number of writes, the last one, the body.
private func line(_ outcome: ItemFold.Outcome) -> String {
    switch outcome {
    case .unchanged: "unchanged"
    case .present(let body, let last, let count): "present \(count) \(last) \(text(body))"
    case .deleted(let last, let count): "deleted \(count) \(last)"
    case .dirty(let body, let last, let count): "dirty \(count) \(last) \(body.map(text) ?? "-")"
    }
}

@Suite struct ItemFoldTests {
    static let base = #"{"id":17,"t":"a","n":1.10,"updatedAt":5}"#
    static let jsonPatch = "application/json-patch+json"

    @Test(
        arguments: [
            (base, [], "unchanged"), (nil, [], "unchanged"), (base, [.put(3, "17", "{}").action("publish")], "dirty 1 3 " + base),
            (base, [.put(3, "17", #"{"t":"b"}"#)], #"present 1 3 {"t":"b","updatedAt":5,"id":17}"#),
            (base, [.put(3, "17", #"{"id":"loc_1","updatedAt":6}"#)], #"present 1 3 {"id":17,"updatedAt":6}"#),
            (nil, [.put(3, "17", #"{"t":"b"}"#)], #"present 1 3 {"t":"b","id":"17"}"#),
            (base, [.patch(3, "17", #"{"t":null,"z":[1.0]}"#)], #"present 1 3 {"id":17,"n":1.10,"updatedAt":5,"z":[1.0]}"#),
            (
                base, [.patch(3, "17", #"{"t":"b"}"#, "application/json"), .patch(5, "17", #"{"u":1}"#)],
                #"present 2 5 {"id":17,"t":"b","n":1.10,"updatedAt":5,"u":1}"#
            ),
            (
                base, [.patch(3, "17", #"[{"op":"move","from":"/n","path":"/m"}]"#, jsonPatch)],
                #"present 1 3 {"id":17,"t":"a","updatedAt":5,"m":1.10}"#
            ),
            (
                base, [.patch(3, "17", #"[{"op":"remove","path":"/id"}]"#, jsonPatch)],
                #"present 1 3 {"t":"a","n":1.10,"updatedAt":5,"id":17}"#
            ),
            (base, [.delete(4, "17")], "deleted 1 4"), (nil, [.delete(4, "17")], "deleted 1 4"),
            (base, [.delete(4, "17"), .patch(6, "17", "{}")], "deleted 2 6"),
            (base, [.delete(4, "17"), .put(6, "17", "").action("bump")], "deleted 2 6"),
            (base, [.delete(4, "17"), .put(5, "17", "{}")], #"present 2 5 {"id":"17"}"#),
            (nil, [.create(1, "loc_1", #"{"t":"a"}"#), .patch(2, "loc_1", #"{"t":"b"}"#)], #"present 2 2 {"t":"b","id":"loc_1"}"#),
            (nil, [.create(1, "loc_1", "{}", nil), .delete(2, "loc_1")], "deleted 2 2"),
            // A partly known item is shown and marked dirty.
            (base, [.put(3, "17", "x=1")], "dirty 1 3 \(base)"), (nil, [.patch(3, "17", "{}")], "dirty 1 3 -"),
            (base, [.patch(3, "17", "[1]", "application/json")], "dirty 1 3 \(base)"),
            (base, [.patch(3, "17", "{}", "application/acme-patch+json")], "dirty 1 3 \(base)"),
            (base, [.patch(3, "17", #"[{"op":"test","path":"/t","value":"z"}]"#, jsonPatch)], "dirty 1 3 \(base)"),
            (base, [.patch(3, "17", "[]", "text/csv"), .patch(4, "17", #"{"t":null}"#)], #"dirty 2 4 {"id":17,"n":1.10,"updatedAt":5}"#),
            (base, [.patch(3, "17", "[]", "text/csv"), .put(4, "17", "{}")], #"present 2 4 {"updatedAt":5,"id":17}"#),
            (nil, [.create(1, "loc_1", "a=b", "application/x-www-form-urlencoded")], "dirty 1 1 -"),
            (nil, [.create(1, "loc_1", "[{}]")], "dirty 1 1 -"),
            (base, [.delete(4, "17"), .put(5, "17", "x")], "dirty 2 5 -"),
        ] as [(String?, [FoldedWrite], String)])
    func folds(_ base: String?, _ writes: [FoldedWrite], _ expected: String) throws {
        #expect(line(ItemFold.fold(try base.map(json), with: writes, resource: .notes)) == expected)
    }

    @Test func answersOfDeliveredWritesAreTheState() throws {
        let base = try json(Self.base)
        let answer: JSONValue = ["id": 17, "t": "B", "updatedAt": 9]
        let later = FoldedWrite.patch(5, "17", #"{"u":1}"#)
        let writes = [FoldedWrite.patch(3, "17", #"{"t":"b"}"#).delivered(answer), later]
        #expect(line(ItemFold.fold(base, with: writes, resource: .notes)) == #"present 2 5 {"id":17,"t":"B","updatedAt":9,"u":1}"#)
        // A response before the delivery is ignored; after a response without a body, the item is the one requested.
        var early = FoldedWrite.put(3, "17", #"{"t":"b"}"#)
        early.answer = answer
        #expect(line(ItemFold.fold(base, with: [early], resource: .notes)) == #"present 1 3 {"t":"b","updatedAt":5,"id":17}"#)
        #expect(
            line(ItemFold.fold(nil, with: [.create(1, "18", #"{"t":"c"}"#).delivered()], resource: .notes))
                == #"present 1 1 {"t":"c","id":"18"}"#
        )
        #expect(line(ItemFold.fold(base, with: [.delete(3, "17").delivered(answer)], resource: .notes)) == "deleted 1 3")
        // A base that contains the item is newer than its creation.
        #expect(ItemFold.fold(base, with: [.create(1, "17", "{}").delivered(["id": 17])], resource: .notes) == .unchanged)
    }

    @Test func answersOfActionsCountWhenTheyAreTheItem() throws {
        let base = try json(Self.base)
        let publish = FoldedWrite.put(3, "17", "").action("publish")
        #expect(line(ItemFold.fold(base, with: [publish.delivered(["ok": true])], resource: .notes)).hasPrefix("dirty 1 3 "))
        #expect(
            line(ItemFold.fold(base, with: [publish.delivered(["id": 17, "p": true])], resource: .notes))
                == #"present 1 3 {"id":17,"p":true}"#)
    }

    @Test(
        arguments: [
            (
                #"{"data":{"note":{"id":1,"a":1,"status":"s","meta":{"version":3}}},"links":[]}"#, .put(1, "1", #"{"a":2,"meta":{}}"#),
                #"{"data":{"note":{"a":2,"meta":{"version":3},"status":"s","id":1}},"links":[]}"#
            ),
            (
                #"{"data":{"note":{"id":1,"meta":{"version":3}}}}"#, .put(1, "1", #"{"data":{"note":{"a":2}}}"#),
                #"{"data":{"note":{"a":2,"meta":{"version":3},"id":1}}}"#
            ),
            (#"{"data":{"note":{"id":1}}}"#, .patch(1, "1", #"{"data":{"note":{"a":2}}}"#), #"{"data":{"note":{"id":1,"a":2}}}"#),
            (#"{"data":{"note":{"id":1}}}"#, .patch(1, "1", #"{"a":2}"#), #"{"data":{"note":{"id":1,"a":2}}}"#),
            (
                #"{"data":{"note":{"id":1}}}"#, .patch(1, "1", #"[{"op":"add","path":"/data/note/a","value":2}]"#, jsonPatch),
                #"{"data":{"note":{"id":1,"a":2}}}"#
            ),
            (
                #"{"data":{"note":{"id":1}}}"#, .patch(1, "1", #"[{"op":"add","path":"/a","value":2}]"#, jsonPatch),
                #"{"data":{"note":{"id":1,"a":2}}}"#
            ),
            (nil, .create(1, "loc_1", #"{"a":2}"#), #"{"data":{"note":{"a":2,"id":"loc_1"}}}"#),
        ] as [(String?, FoldedWrite, String)])
    func withinAnEnvelope(_ base: String?, _ write: FoldedWrite, _ body: String) throws {
        #expect(line(ItemFold.fold(try base.map(json), with: [write], resource: .enveloped)) == "present 1 1 \(body)")
    }

    @Test func aBaseWithoutItsEnvelopeIsNotTouched() throws {
        let base: JSONValue = ["error": "x"]
        #expect(ItemFold.fold(base, with: [.patch(1, "1", "{}")], resource: .enveloped) == .dirty(base, last: 1, count: 1))
    }

    @Test func numbersAsIds() throws {
        var write = FoldedWrite.create(1, "-3", #"{"id":"mine"}"#)
        write.idIsNumber = true
        #expect(line(ItemFold.fold(nil, with: [write], resource: .notes)) == #"present 1 1 {"id":-3}"#)
    }
}

@Suite struct OptimisticReplyTests {
    @Test(
        arguments: [
            (.create(1, "loc_1", #"{"t":"a"}"#), nil, false, 201, #"{"t":"a","id":"loc_1"}"#),
            (.create(1, nil, #"{"t":"a"}"#), nil, false, nil, nil),
            (.create(1, "loc_1", "t=a", "application/x-www-form-urlencoded"), nil, false, nil, nil),
            (.create(1, "loc_1", ""), nil, false, nil, nil),
            (.put(1, "1", #"{"t":"b"}"#), #"{"id":"1","updatedAt":2}"#, true, 200, #"{"t":"b","updatedAt":2,"id":"1"}"#),
            (.put(1, "1", #"{"t":"b"}"#), nil, false, 201, #"{"t":"b","id":"1"}"#),
            (.put(1, "1", #"{"t":"b"}"#), nil, true, 200, #"{"t":"b","id":"1"}"#),
            (.put(1, "1", "b"), #"{"id":"1"}"#, true, nil, nil),
            (.patch(1, "1", #"{"t":"b"}"#), #"{"id":"1","n":1.0}"#, true, 200, #"{"id":"1","n":1.0,"t":"b"}"#),
            (.patch(1, "1", "{}"), nil, true, nil, nil), (.delete(1, "1"), #"{"id":"1"}"#, true, 204, nil),
            (.delete(1, "1"), nil, false, 204, nil),
            (.put(1, "1", "{}").action("publish"), #"{"id":"1"}"#, true, nil, nil),
        ] as [(FoldedWrite, String?, Bool, Int?, String?)])
    func decides(_ write: FoldedWrite, _ base: String?, _ isKnown: Bool, _ status: Int?, _ body: String?) throws {
        let reply = OptimisticReply.decide(write, base: try base.map(json), baseIsKnown: isKnown, resource: .notes)
        #expect(reply?.status == status && reply?.body.map(text) == body)
    }

    @Test func inTheEnvelope() {
        let reply = OptimisticReply.decide(.create(1, "loc_1", #"{"a":1}"#), base: nil, baseIsKnown: false, resource: .enveloped)
        #expect(reply?.body.map(text) == #"{"data":{"note":{"a":1,"id":"loc_1"}}}"#)
    }
}
