// Marks of waiting entries in lists, and what becomes of them in writes (docs/outbox.md#marks).
import RockpoolCore
import Testing

@Suite struct MarkTests {
    private static func resource(items: String = "", element: String = "", envelope: String = "") -> Resource {
        var resource = Resource(collection: "/notes", items: items, envelope: envelope)
        (resource.element, resource.mark) = (element, "/_sync")
        return resource
    }

    @Test(
        arguments: [
            (#"[{"id":1},{"id":2}]"#, "", "", [.patch(1, "2", #"{"a":1}"#)], #"[{"id":1},{"id":2,"a":1,"_sync":"pending-update"}]"#),
            (
                "[]", "", "", [.create(1, "loc_1", "{}"), .patch(2, "loc_1", #"{"a":1}"#)],
                #"[{"id":"loc_1","a":1,"_sync":"pending-create"}]"#
            ),
            (#"[{"id":1}]"#, "", "", [.patch(1, "1", #"{"a":1}"#).delivered()], #"[{"id":1,"a":1}]"#),
            (
                #"[]"#, "", "", [.create(1, "7", "{}").delivered(["id": 7]), .patch(2, "7", #"{"a":1}"#)],
                #"[{"id":7,"a":1,"_sync":"pending-update"}]"#
            ),
            (#"[{"id":1},{"id":2}]"#, "", "", [.delete(1, "2")], #"[{"id":1}]"#),
            (
                #"{"entry":[{"resource":{"id":1}}]}"#, "/entry", "/resource", [.patch(1, "1", #"{"a":1}"#)],
                #"{"entry":[{"resource":{"id":1,"a":1,"_sync":"pending-update"}}]}"#
            ),
        ] as [(String, String, String, [FoldedWrite], String)])
    func entriesShowWhatTheyWaitFor(_ base: String, _ items: String, _ element: String, _ writes: [FoldedWrite], _ expected: String) throws
    {
        let base = try JSONValue.parse(Array(base.utf8))
        let fold = CollectionFold.fold(base, query: nil, with: writes, resource: Self.resource(items: items, element: element))
        #expect(fold.value == (try JSONValue.parse(Array(expected.utf8))))
    }

    @Test(
        arguments: [
            (#"{"id":1,"_sync":"pending-update"}"#, "", #"{"id":1}"#), (#"{"id":1,"_sync":null}"#, "", #"{"id":1}"#),
            (#"{"id":1,"sync":"x"}"#, "", nil), ("7", "", nil),
            (#"[{"id":1,"_sync":"x"},{"id":2}]"#, "", #"[{"id":1},{"id":2}]"#),
            (#"{"data":{"id":1,"_sync":"x"},"m":1}"#, "/data", #"{"data":{"id":1},"m":1}"#),
            (#"{"_sync":"x"}"#, "/data", "{}"), (#"{"data":[{"_sync":"x"}]}"#, "/data", #"{"data":[{}]}"#),
            (#"{"other":{"_sync":"x"}}"#, "/data", nil),
        ] as [(String, String, String?)])
    func writesLoseThem(_ body: String, _ envelope: String, _ expected: String?) throws {
        let plain = Self.resource(envelope: envelope).unmarked(try JSONValue.parse(Array(body.utf8)))
        #expect(plain == (try expected.map { try JSONValue.parse(Array($0.utf8)) }))
        #expect(Resource(collection: "/notes").unmarked(["_sync": "x"]) == nil)
    }

    @Test(
        arguments: [
            ([.patch(1, "1", "{}")], .pendingUpdate), ([.create(1, "loc_1", "{}"), .patch(2, "loc_1", "{}")], .pendingCreate),
            ([.create(1, "7", "{}").delivered(), .patch(2, "7", "{}")], .pendingUpdate),
            ([.patch(1, "1", "{}"), .delete(2, "1")], .pendingDelete),
            ([.delete(1, "1"), .put(2, "1", "{}")], .pendingUpdate), ([.delete(1, "1").delivered()], nil),
            ([.put(1, "1", "{}").action("publish")], .pendingUpdate), ([], nil),
        ] as [([FoldedWrite], EntityState?)])
    func statesOfFoldedWrites(_ writes: [FoldedWrite], _ expected: EntityState?) { #expect(EntityState.shown(by: writes) == expected) }
}
