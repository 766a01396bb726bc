// Changes applied to cached bodies without loss (docs/outbox.md#delta-pull).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ResourceApplyTests {
    static let bare = Resource(collection: "/n")
    static let boxed = Resource(collection: "/n", items: "/data/list", envelope: "/data", id: "/key")

    static func upsert(_ id: String, _ text: String = "new") -> DeltaChange {
        .upsert(id: id, version: nil, representation: ["id": .string(id), "t": .string(text)])
    }

    private func text(_ value: JSONValue?) -> String? { value.map { String(decoding: $0.serialized(), as: UTF8.self) } }
    private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

    @Test(
        arguments: [
            (
                #"[{"id":"1","n":1.50},{"id":"2"}]"#, [upsert("2"), upsert("3")], false,
                #"[{"id":"1","n":1.50},{"id":"2","t":"new"},{"id":"3","t":"new"}]"#
            ),
            (#"[{"id":"1"},{"id":"2"}]"#, [.removal(id: "1"), .removal(id: "9")], false, #"[{"id":"2"}]"#),
            (#"[{"id":"1"},{"id":"2"}]"#, [upsert("3"), upsert("1")], true, #"[{"id":"3","t":"new"},{"id":"1","t":"new"}]"#),
            (#"[{"id":"1"}]"#, [], false, #"[{"id":"1"}]"#), (#"[{"id":"1"}]"#, [], true, "[]"),
        ] as [(String, [DeltaChange], Bool, String)])
    func collections(_ body: String, _ changes: [DeltaChange], _ isFull: Bool, _ expected: String) throws {
        #expect(text(Self.bare.collection(try json(body), fields: [:], applying: changes, isFull: isFull)) == expected)
    }

    @Test func whatIsAroundTheItemsStays() throws {
        let body = try json(#"{"v":1e2,"data":{"list":[{"key":7}],"z":null}}"#)
        let change = DeltaChange.upsert(id: "7", version: nil, representation: ["key": 7, "a": 1])
        #expect(
            text(Self.boxed.collection(body, fields: [:], applying: [change], isFull: false))
                == #"{"v":1e2,"data":{"list":[{"key":7,"a":1}],"z":null}}"#)
        #expect(Self.boxed.ids(in: body) == ["7"])
    }

    @Test func whatIsHeldBackStaysAsItIs() throws {
        let body = try json(#"[{"id":"1"},{"id":"2"}]"#)
        let delta = Self.bare.collection(
            body, fields: [:], applying: [Self.upsert("1"), .removal(id: "2")], isFull: false, keeping: ["1", "2"])
        #expect(text(delta) == #"[{"id":"1"},{"id":"2"}]"#)
        let full = Self.bare.collection(body, fields: [:], applying: [Self.upsert("3")], isFull: true, keeping: ["2"])
        #expect(text(full) == #"[{"id":"3","t":"new"},{"id":"2"}]"#)
    }

    @Test(arguments: [#"{"items":[]}"#, #"[{"x":1}]"#, "7"]) func whatIsNotTheCollectionIsLeftAlone(_ body: String) throws {
        #expect(Self.bare.collection(try json(body), fields: [:], applying: [Self.upsert("1")], isFull: false) == nil)
    }

    @Test func aPageIsNotTheCollection() throws {
        let name = try #require(HTTPField.Name("Link"))
        #expect(Self.bare.collection([], fields: [name: "</n?p=2>; rel=next"], applying: [], isFull: false) == nil)
        let next = try json(#"{"next":"x","data":{"list":[]}}"#)
        #expect(Self.boxed.collection(next, fields: [:], applying: [], isFull: false) == nil)
    }

    @Test func anItemIsReplacedButNotByASummary() throws {
        let envelope = Resource(collection: "/n", envelope: "/note")
        let body = try json(#"{"note":{"id":"1","t":"old"},"meta":1.0}"#)
        #expect(
            text(envelope.item(body, replacedBy: ["id": "1", "t": "new", "x": 1])) == #"{"note":{"id":"1","t":"new","x":1},"meta":1.0}"#)
        #expect(envelope.item(body, replacedBy: ["id": "1"]) == nil)
        #expect(envelope.item(["note": 7], replacedBy: ["id": "1"]) == nil)
        #expect(envelope.object(in: body)?["t"] == "old" && envelope.object(in: 7) == nil)
    }

    @Test(arguments: [(nil, "17", "/n/17"), ("/note/{id}", "a/b ü", "/note/a%2Fb%20%C3%BC"), ("/n/{id}/full", "x", "/n/x/full")])
    func paths(_ item: String?, _ id: String, _ path: String) {
        #expect(Resource(collection: "/n", item: item).path(of: id) == path)
    }

    @Test func theHeadOfARevisedBodySaysNothingOfTheOldOne() {
        let old = ResponseHead(
            status: 200,
            fields: [
                .eTag: "\"1\"", .lastModified: "x", .date: "y", .contentLength: "9", .contentEncoding: "gzip", .age: "7",
                .contentType: "application/json",
                .cacheControl: "max-age=9", .vary: "Accept",
            ])
        let new = old.revised
        #expect(new.fields == [.contentType: "application/json", .cacheControl: "max-age=9", .vary: "Accept"])
    }

    static let write = PendingWrite(operation: "op", entity: "/n/1", method: "PUT", baseETag: "\"1\"", baseVersion: "3")

    @Test(
        arguments: [
            (write, "3", "\"9\"", nil, false), (write, "4", "\"1\"", nil, true), (write, nil, "\"1\"", "old", false),
            (write, nil, "\"2\"", nil, true), (write, nil, nil, "new", false), (write, nil, nil, "old", true),
            (write, nil, nil, nil, false),
        ] as [(PendingWrite, String?, String?, JSONValue?, Bool)])
    func conflictsAreSeenAhead(_ write: PendingWrite, _ version: String?, _ etag: String?, _ base: JSONValue?, _ isOne: Bool) {
        let found = write.conflict(with: .upsert(id: "1", version: version, representation: "new"), etag: etag, base: base)
        #expect((found != nil) == isOne && found?.theirs == (isOne ? "new" : nil))
    }

    @Test(arguments: [("PUT", true, true), ("PATCH", true, true), ("DELETE", true, false), ("POST", true, false), ("PUT", false, false)])
    func deletionsMeetEditsOnly(_ method: String, _ isUnsent: Bool, _ isOne: Bool) {
        let write = PendingWrite(operation: "op", entity: "/n/1", method: method, isUnsent: isUnsent)
        #expect((write.conflict(with: .removal(id: "1")) != nil) == isOne)
    }
}
