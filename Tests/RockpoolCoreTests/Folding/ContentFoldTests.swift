// Items whose id stands beside what writes carry, items outside of their lists, and totals of lists of several pages (docs/outbox.md#reads).
import RockpoolCore
import Testing

private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

@Suite struct ContentFoldTests {
    private static let notes: Resource = {
        var resource = Resource(collection: "/notes", item: "/notes/{id}")
        resource.content = "/data"
        return resource
    }()

    @Test(
        arguments: [
            (#"{"id":7,"data":{"a":1},"v":2}"#, FoldedWrite.put(3, "7", #"{"b":1}"#), #"{"id":7,"data":{"b":1},"v":2}"#),
            (#"{"id":7,"data":{"a":1},"v":2}"#, .patch(3, "7", #"{"b":1}"#), #"{"id":7,"data":{"a":1,"b":1},"v":2}"#),
            (#"{"id":7,"data":{"a":1}}"#, .patch(3, "7", #"{"data":{"b":1}}"#), #"{"id":7,"data":{"a":1,"b":1}}"#),
            (
                #"{"id":7,"data":{"a":1}}"#, .patch(3, "7", #"[{"op":"add","path":"/b","value":1}]"#, "application/json-patch+json"),
                #"{"id":7,"data":{"a":1,"b":1}}"#
            ),
        ])
    func aWriteOfTheContentChangesIt(base: String, write: FoldedWrite, expected: String) throws {
        #expect(ItemFold.fold(try json(base), with: [write], resource: Self.notes) == .present(try json(expected), last: 3, count: 1))
    }

    @Test func aNewItemHasItsContent() throws {
        let fold = CollectionFold.fold(
            try json(#"[{"id":7,"data":{"a":1}}]"#), query: nil, with: [.create(3, "loc_1", #"{"a":2}"#)], resource: Self.notes)
        #expect(fold.value == (try json(#"[{"id":7,"data":{"a":1}},{"data":{"a":2},"id":"loc_1"}]"#)))
    }

    @Test func aNewItemHasWhatTheUpstreamMakes() throws {
        var notes = Resource(collection: "/notes", item: "/notes/{id}")
        notes.learned = LearnedTraits(
            isCreating: true,
            made: ["at": .time(digits: 6, offset: "-06:00"), "made": .time(digits: 0, offset: "Z"), "url": .link("/notes/{id}/")])
        let id = LocalID.make(now: Timestamp(milliseconds: 1), random: (1, 2)).text
        var create = FoldedWrite.create(3, id, #"{"made":"x"}"#)
        create.madeAt = UUIDv7.moment(of: UUIDv7.make(now: Timestamp(milliseconds: 1_796_005_254_952), random: (1, 2)))
        let fold = CollectionFold.fold(try json("[]"), query: nil, with: [create, .put(4, id, #"{"a":1}"#)], resource: notes)
        let shown = fold.value.array?.first
        #expect(shown?["at"]?.string == "2026-11-29T20:20:54.952000-06:00" && shown?["url"] == .string("/notes/\(id)/"))
        #expect(shown?["made"] == "x" && shown?["a"] == 1)
    }

    @Test func whatIsInAnotherListStaysThere() throws {
        let tasks = Resource(collection: "/projects/{project}/tasks", item: "/tasks/{id}")
        let fold = CollectionFold.fold(
            try json(#"[{"id":7,"a":1}]"#), query: nil,
            with: [.patch(3, "7", #"{"a":2}"#), .put(4, "8", #"{"a":3}"#), .delete(5, "9"), .create(6, "loc_1", #"{"a":4}"#)],
            resource: tasks)
        #expect(fold.value == (try json(#"[{"id":7,"a":2},{"a":4,"id":"loc_1"}]"#)) && !fold.isDirty)
    }

    @Test(
        arguments: [
            // The page that has the item, and another.
            (#"{"items":[{"id":1},{"id":2}],"count":5}"#, "page=1", FoldedWrite.delete(3, "1"), #"{"items":[{"id":2}],"count":4}"#),
            (#"{"items":[{"id":3},{"id":4}],"count":5}"#, "page=2", .delete(3, "1"), #"{"items":[{"id":3},{"id":4}],"count":4}"#),
            (
                #"{"items":[{"id":3},{"id":4}],"count":5,"next":"x"}"#, "page=2", .create(3, "loc_1", #"{"a":1}"#),
                #"{"items":[{"id":3},{"id":4}],"count":6,"next":"x"}"#
            ),
            // Not known to be of the list.
            (
                #"{"items":[{"id":3,"s":"a"}],"count":5,"next":"x"}"#, "s=a&page=2", .delete(3, "1"),
                #"{"items":[{"id":3,"s":"a"}],"count":5,"next":"x"}"#
            ),
        ])
    func totalsFollowOnEveryPage(base: String, query: String, write: FoldedWrite, expected: String) throws {
        let resource = Resource(collection: "/notes", item: "/notes/{id}", items: "/items")
        #expect(CollectionFold.fold(try json(base), query: query, with: [write], resource: resource).value == (try json(expected)))
    }
}
