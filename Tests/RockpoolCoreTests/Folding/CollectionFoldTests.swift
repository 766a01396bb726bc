// A collection with the client's own creates, changes and deletes folded in (docs/outbox.md#reads).
import HTTPTypes
import RockpoolCore
import Testing

private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }
private func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

/// Returns an outcome in one line: the number of writes, the last one, the dirty flag, the body.
private func line(_ outcome: CollectionOutcome) -> String {
    "\(outcome.count) \(outcome.last.map(String.init) ?? "-")\(outcome.isDirty ? " dirty" : "") \(text(outcome.value))"
}

private let open = #"{"id":"n","s":"open","k":["x","y"],"b":true,"p":1.0}"#

@Suite struct CollectionFoldTests {
    @Test(
        arguments: [
            (
                #"{"items":[{"id":1},{"id":2}],"total":2,"x":1.50}"#, [.put(4, "2", #"{"a":1}"#), .delete(5, "1")],
                #"2 5 {"items":[{"a":1,"id":2}],"total":1,"x":1.50}"#
            ),
            (
                #"{"total":2,"count":9,"totalCount":1,"items":[{"id":1},{"id":2}]}"#, [.create(3, "loc_1", "{}")],
                #"1 3 {"total":3,"count":10,"totalCount":1,"items":[{"id":1},{"id":2},{"id":"loc_1"}]}"#
            ),
            (
                #"{"items":[],"total":"0","total_count":9223372036854775807}"#, [.create(3, "loc_1", "{}")],
                #"1 3 {"items":[{"id":"loc_1"}],"total":"0","total_count":9223372036854775807}"#
            ),
            (#"{"items":[{"id":1}]}"#, [], #"0 - {"items":[{"id":1}]}"#),
            (#"{"items":[{"id":1}]}"#, [.patch(3, "2", "{}"), .delete(4, "3")], #"0 - {"items":[{"id":1}]}"#),
            (#"{"items":[{"id":1}]}"#, [.create(3, "loc_1", "{}"), .delete(4, "loc_1")], #"0 - {"items":[{"id":1}]}"#),
            (
                #"{"items":[]}"#,
                [
                    .create(3, "loc_1", #"{"a":1}"#), .patch(4, "loc_1", #"{"a":2}"#), .create(5, "loc_2", "{}"),
                    .put(6, "loc_1", #"{"c":3}"#),
                ],
                #"4 6 {"items":[{"c":3,"id":"loc_1"},{"id":"loc_2"}]}"#
            ),
            (#"{"items":[{"id":"9"}],"next":"abc"}"#, [.put(3, "8", "{}")], #"1 3 dirty {"items":[{"id":"9"}],"next":"abc"}"#),
            (#"{"items":[{"id":"9"}],"next":null}"#, [.put(3, "8", "{}")], #"1 3 {"items":[{"id":"9"},{"id":"8"}],"next":null}"#),
            // A delivered create that the base already contains is not added again, under either id.
            (
                #"{"items":[{"id":7,"a":2}]}"#, [.create(3, "7", #"{"a":1}"#).delivered(["id": 7, "a": 1])],
                #"0 - {"items":[{"id":7,"a":2}]}"#
            ),
            (
                #"{"items":[{"id":7,"a":2}]}"#, [.create(3, nil, #"{"a":1}"#).delivered(["id": 7, "a": 1])],
                #"0 - {"items":[{"id":7,"a":2}]}"#
            ),
            (#"{"items":[{"id":7,"a":2}]}"#, [.create(3, "loc_1", "{}").delivered(["id": 7])], #"0 - {"items":[{"id":7,"a":2}]}"#),
            (#"{"items":[]}"#, [.create(3, "7", #"{"a":1}"#).delivered(["id": 7, "a": 1])], #"1 3 {"items":[{"id":7,"a":1}]}"#),
            (#"{"items":[]}"#, [.create(3, nil, "{}"), .create(4, "loc_1", "a=b", "text/plain")], #"2 4 dirty {"items":[]}"#),
            (#"{"items":[{"id":1}]}"#, [.patch(3, "1", "x", "text/plain")], #"1 3 dirty {"items":[{"id":1}]}"#),
            (#"{"notes":[]}"#, [.delete(3, "1")], #"1 3 dirty {"notes":[]}"#),
        ] as [(String, [FoldedWrite], String)])
    func folds(_ base: String, _ writes: [FoldedWrite], _ expected: String) throws {
        #expect(line(CollectionFold.fold(try json(base), query: nil, with: writes, resource: .notes)) == expected)
    }

    @Test(arguments: [
        (#"[{"id":"1","u":3},{"id":"2","u":2},{"id":"3","u":2}]"#, "n m 1 2 3"), (#"[{"id":"1","u":3}]"#, "1 m n"),
        (#"[{"id":"1","u":"2026-01-02T00:00:00Z"},{"id":"2","u":"2026-01-02T00:30:00+01:00"}]"#, "n m 1 2"),
        (#"[{"id":"1","u":2},{"id":"2","u":2}]"#, "1 2 m n"),
        (#"[{"id":"1","u":1},{"id":"2","u":2}]"#, "1 2 m n"), (#"[{"id":"1","u":3},{"id":"2"},{"id":"3","u":2}]"#, "1 2 3 m n"),
    ])
    func place(_ base: String, _ order: String) throws {
        let writes: [FoldedWrite] = [.create(1, "m", "{}"), .create(2, "n", "{}")]
        let folded = CollectionFold.fold(try json(base), query: nil, with: writes, resource: .plain).value
        #expect(folded.array?.compactMap { $0["id"]?.string }.joined(separator: " ") == order)
    }

    /// The outcome for a new open item: in, in and dirty, out, or out and dirty.
    @Test(
        arguments: [
            (nil, "in"), ("", "in"), ("s=open", "in"), ("s=done", "out"), ("%73=op%65n&b=true&b2", "out dirty"), ("k=y", "in"),
            ("k=z", "out"),
            ("p=1", "in"), ("p=2", "out"), ("b=true", "in"), ("b=0", "out"), ("b=maybe", "out dirty"), ("s=open,done", "out dirty"),
            ("s=open&s=done", "out dirty"), ("s=open&p=1", "in"), ("s=open&p=2", "out"), ("unknown=1", "out dirty"),
            ("unknown=1&s=done", "out"), ("q=n", "out dirty"),
            ("updatedAfter=0", "out dirty"), ("page=1&per_page=20", "in dirty"), ("page=2", "out dirty"), ("limit=20&offset=0", "in dirty"),
            ("offset=20", "out dirty"), ("cursor=abc", "out dirty"), ("sort=-s", "in dirty"), ("fields=id", "in dirty"),
            ("s=open&limit=20", "in dirty"),
            ("s=done&limit=20", "out"), ("limit=20&q=n", "out dirty"), ("later=x", "out dirty"),
        ] as [(String?, String)])
    func creates(_ query: String?, _ expected: String) throws {
        let outcome = CollectionFold.fold([], query: query, with: [.create(1, "n", open)], resource: .plain)
        #expect((outcome.value == [] ? "out" : "in") + (outcome.isDirty ? " dirty" : "") == expected)
    }

    @Test(
        arguments: [
            // An item leaves, stays or comes in; for an unknown item, or a member that is gone, the membership cannot be determined.
            ("s=open", .patch(1, "1", #"{"s":"done"}"#), #"1 1 []"#),
            ("s=open", .patch(1, "1", #"{"a":1}"#), #"1 1 [{"id":"1","s":"open","a":1}]"#),
            ("s=open", .put(1, "2", #"{"s":"open"}"#), #"1 1 [{"id":"1","s":"open"},{"s":"open","id":"2"}]"#),
            ("s=open", .put(1, "2", #"{"s":"x"}"#), #"0 - [{"id":"1","s":"open"}]"#),
            ("s=open", .patch(1, "2", #"{"s":"open"}"#), #"1 1 dirty [{"id":"1","s":"open"}]"#),
            ("s=open", .patch(1, "2", "{}").delivered(["id": "2", "s": "open"]), #"1 1 [{"id":"1","s":"open"},{"id":"2","s":"open"}]"#),
            ("s=open", .patch(1, "1", #"{"s":null}"#), #"1 1 dirty [{"id":"1"}]"#),
            ("q=x", .patch(1, "1", #"{"s":"done"}"#), #"1 1 dirty [{"id":"1","s":"done"}]"#),
            ("q=x", .delete(1, "1"), "1 1 []"), ("page=3", .patch(1, "1", #"{"s":"done"}"#), #"1 1 [{"id":"1","s":"done"}]"#),
            // The base contains an item that does not satisfy the query as read here: the upstream interprets `s` differently.
            ("s=op", .patch(1, "1", #"{"s":"done"}"#), #"1 1 dirty [{"id":"1","s":"done"}]"#),
            ("s=op", .create(1, "n", #"{"s":"op"}"#), #"1 1 dirty [{"id":"1","s":"open"}]"#),
        ] as [(String, FoldedWrite, String)])
    func updates(_ query: String, _ write: FoldedWrite, _ expected: String) throws {
        #expect(line(CollectionFold.fold([["id": "1", "s": "open"]], query: query, with: [write], resource: .plain)) == expected)
    }

    @Test func digitsAndOrderOfTheUntouched() throws {
        let source = #"{"meta":{"z":1E400,"a":0.10},"items":[{"z":12345678901234567890,"id":"1"},{"id":"2","b":-0}]}"#
        let outcome = CollectionFold.fold(try json(source), query: nil, with: [.patch(1, "2", #"{"c":1}"#)], resource: .notes)
        #expect(text(outcome.value) == source.replacing(#""b":-0"#, with: #""b":-0,"c":1"#))
    }
}

/// Writes that were sent without an answer: the list that was asked for since may have them (docs/outbox.md#reads).
@Suite struct SentWithoutAnswerTests {
    private static let notes = Resource(collection: "/notes", items: "/items")

    /// A list, the ids from before, and what it shows of a create of `{"a":1}` under `loc_1`, with its `Rockpool-Dirty`.
    @Test(
        arguments: [
            (#"{"items":[{"id":1,"a":1}]}"#, ["1"], #"{"items":[{"id":1,"a":1},{"a":1,"id":"loc_1"}]}"#, false),
            (#"{"items":[{"id":1,"a":1},{"id":2,"a":1,"at":9}]}"#, ["1"], #"{"items":[{"id":1,"a":1},{"a":1,"id":"loc_1"}]}"#, false),
            // Somebody else's: both may be there.
            (#"{"items":[{"id":2,"a":7}]}"#, [], #"{"items":[{"id":2,"a":7},{"a":1,"id":"loc_1"}]}"#, true),
            (#"{"items":[{"id":2,"a":1}]}"#, nil, #"{"items":[{"id":2,"a":1},{"a":1,"id":"loc_1"}]}"#, true),
        ] as [(String, Set<String>?, String, Bool)])
    func aCreateIsShownOnce(_ list: String, _ before: Set<String>?, _ shown: String, _ isDirty: Bool) throws {
        var create = FoldedWrite.create(3, "loc_1", #"{"a":1}"#)
        (create.mayBeShown, create.idsBefore) = (true, before)
        let outcome = CollectionFold.fold(try json(list), query: nil, with: [create], resource: Self.notes)
        #expect(try outcome.value == json(shown))
        #expect(outcome.isDirty == isDirty)
    }

    @Test func twoCreatesAreTwoItemsAndADeleteIsAboutOne() throws {
        var writes: [FoldedWrite] = [.create(3, "loc_1", #"{"a":1}"#), .create(4, "loc_2", #"{"a":1}"#)]
        for index in writes.indices { (writes[index].mayBeShown, writes[index].idsBefore) = (true, []) }
        let list = try json(#"{"items":[{"id":8,"a":1},{"id":9,"a":1}]}"#)
        let both = CollectionFold.fold(list, query: nil, with: writes, resource: Self.notes)
        #expect(try both.value == json(#"{"items":[{"a":1,"id":"loc_1"},{"a":1,"id":"loc_2"}]}"#))
        let one = CollectionFold.fold(list, query: nil, with: writes + [.delete(5, "loc_1")], resource: Self.notes)
        #expect(try one.value == json(#"{"items":[{"a":1,"id":"loc_2"}]}"#))
        #expect(!both.isDirty && !one.isDirty)
    }

    /// A copy with its effect shows it under its own key: another item that looks like it is another one.
    @Test func aCreateWithAChosenKeyIsFoundByIt() throws {
        var create = FoldedWrite.create(3, "k", #"{"id":"k","a":1}"#)
        (create.mayBeShown, create.idsBefore, create.hasChosenKey) = (true, [], true)
        for (list, shown) in [
            (#"{"items":[{"id":8,"a":1}]}"#, #"{"items":[{"id":8,"a":1},{"id":"k","a":1}]}"#),
            (#"{"items":[{"id":"k","a":1,"at":9}]}"#, #"{"items":[{"id":"k","a":1,"at":9}]}"#),
        ] {
            let outcome = CollectionFold.fold(try json(list), query: nil, with: [create], resource: Self.notes)
            #expect(try outcome.value == json(shown) && !outcome.isDirty, "\(outcome.value)")
        }
    }

    @Test func onlyAJSONPatchIsNotAppliedAgain() throws {
        let list = try json(#"{"items":[{"id":1,"tags":["a","x"]}]}"#)
        var patch = FoldedWrite(
            sequence: 3, method: .patch, isItem: true, id: "1", contentType: "application/json-patch+json",
            body: Array(#"[{"op":"add","path":"/tags/-","value":"x"}]"#.utf8))
        patch.mayBeShown = true
        let patched = CollectionFold.fold(list, query: nil, with: [patch], resource: Self.notes)
        #expect(patched.value == list && patched.isDirty)
        var merge = FoldedWrite.patch(3, "1", #"{"tags":["b"]}"#)
        merge.mayBeShown = true
        let merged = CollectionFold.fold(list, query: nil, with: [merge], resource: Self.notes)
        #expect(try merged.value == json(#"{"items":[{"id":1,"tags":["b"]}]}"#) && !merged.isDirty)
        // A whole representation behind it is known again.
        let put = CollectionFold.fold(list, query: nil, with: [patch, .put(4, "1", #"{"tags":[]}"#)], resource: Self.notes)
        #expect(!put.isDirty)
    }
}
