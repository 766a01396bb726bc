// The search for the effect of an uncertain write, with every kind of probe response (docs/outbox.md#uncertain *uncertain*, §2.4).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct EffectSearchTests {
    static let notes = Resource(collection: "/v1/notes", item: "/v1/notes/{id}", updatedAt: "/updatedAt")
    static let wrapped = Resource(collection: "/v1/notes", items: "/items", envelope: "/note", version: "/version")

    private func search(
        _ method: HTTPRequest.Method, _ target: String, _ body: String, _ resource: Resource = notes, _ fields: HTTPFields = [:]
    ) -> EffectProbe? {
        EffectProbe(
            RequestHead(method: method, origin: origin, target: target, fields: fields), body: Array(body.utf8), resource: resource)
    }

    private func judged(
        _ search: EffectProbe?, _ status: Int, _ body: String, etag: String? = nil, known: Set<String> = []
    ) throws -> ObservedEffect {
        var head = ResponseHead(status: status)
        head.fields[.eTag] = etag
        return try #require(search).judge(head, body: Array(body.utf8)) { known.contains($0) }
    }

    @Test(
        arguments: [
            (HTTPRequest.Method.post, "/v1/notes?notify=1", "{}", "/v1/notes"), (.post, "/v1/notes/", "{}", "/v1/notes/"),
            (.put, "/v1/notes/7?x=1", "{}", "/v1/notes/7"), (.patch, "/v1/notes/7", "{}", "/v1/notes/7"),
            (.delete, "/v1/notes/7", "", "/v1/notes/7"),
            // The effect of these requests could not be recognised.
            (.post, "/v1/notes", "[]", nil), (.post, "/v1/notes", "text", nil), (.post, "/v1/notes/7", "{}", nil),
            (.post, "/v1/notes/7/publish", "{}", nil), (.put, "/v1/notes", "{}", nil), (.put, "/v2/notes/7", "{}", nil),
        ] as [(HTTPRequest.Method, String, String, String?)])
    func theQuestionIsAboutTheItemOrItsCollection(
        method: HTTPRequest.Method, target: String, body: String, asked: String?
    ) throws {
        let fields: HTTPFields = [
            .ifMatch: "\"1\"", .ifNoneMatch: "*", .contentType: "application/json", .contentLength: "2", .authorization: "ann",
        ]
        let question = search(method, target, body, Self.notes, fields)?.question
        #expect(question?.target == asked)
        guard let question else { return }
        #expect(question.method == .get && question.origin == origin)
        #expect(question.fields == [.authorization: "ann", .accept: "application/json, */*;q=0.1", .acceptEncoding: "identity"])
    }

    @Test(
        arguments: [
            (#"[{"id":7,"title":"a","size":3}]"#, "7"), (#"[{"id":"x","title":"a"}]"#, "x"),
            // The server's own members and added members are ignored.
            (#"[{"id":7,"title":"a","updatedAt":"later"}]"#, "7"),
            (#"[{"id":1,"title":"a"},{"id":7,"title":"a"}]"#, "7"), (#"[{"id":7,"title":"a"},{"id":8,"title":"b"}]"#, "7"),
            (#"[{"id":7,"title":"a"},{"id":8,"title":"a"}]"#, nil), (#"[{"id":1,"title":"a"}]"#, nil), (#"[{"id":7}]"#, nil),
            (#"[{"title":"a"}]"#, nil), (#"[]"#, nil), (#"{"items":[]}"#, nil), ("", nil),
        ] as [(String, String?)])
    func aCreateIsTheOneItemThatIsNewAndHoldsItAll(list: String, id: String?) throws {
        let create = search(.post, "/v1/notes", #"{"id":"loc","title":"a","updatedAt":"now"}"#)
        let effect = try judged(create, 200, list, known: ["1"])
        guard let id else { return #expect(effect == .unknown) }
        guard case .present(let mapping?) = effect else { return #expect(Bool(false), "\(effect)") }
        #expect(mapping.id.text == id && mapping.url == "https://api.example.com/v1/notes/\(id)")
    }

    @Test func anAnswerThatIsNoListSaysNothing() throws {
        let list = #"[{"id":7,"title":"a"}]"#
        for status in [204, 206, 304, 401, 404, 500] {
            #expect(try judged(search(.post, "/v1/notes", #"{"title":"a"}"#), status, list) == .unknown)
        }
    }

    @Test func envelopesAreOpened() throws {
        let create = search(.post, "/v1/notes/", #"{"note":{"title":"a","version":1}}"#, Self.wrapped)
        guard case .present(let mapping?) = try judged(create, 200, #"{"items":[{"id":7,"title":"a","version":2}]}"#) else {
            return #expect(Bool(false))
        }
        #expect(mapping.url == "https://api.example.com/v1/notes/7", "exactly one slash, whatever the request has")
        let put = search(.put, "/v1/notes/7", #"{"note":{"title":"a","version":1}}"#, Self.wrapped)
        #expect(try judged(put, 200, #"{"note":{"id":7,"title":"a","version":2}}"#) == .present(nil))
    }

    static let items: [(HTTPRequest.Method, String, String, Int, String, ObservedEffect)] = [
        (.put, #"{"title":"a"}"#, "application/json", 200, #"{"id":7,"title":"a","size":1}"#, .present(nil)),
        (.put, #"{"title":"a","updatedAt":"x"}"#, "application/json", 200, #"{"title":"a","updatedAt":"y"}"#, .present(nil)),
        (.put, #"{"title":"a"}"#, "application/json", 200, #"{"title":"b"}"#, .unknown),
        (.put, #"{"title":"a"}"#, "application/json", 404, #"{"title":"a"}"#, .unknown),
        (.patch, #"{"title":"a"}"#, "application/json", 200, #"{"title":"a","size":1}"#, .present(nil)),
        (.patch, #"{"size":null}"#, "application/merge-patch+json", 200, #"{"title":"a"}"#, .present(nil)),
        (.patch, #"{"size":null}"#, "application/merge-patch+json", 200, #"{"title":"a","size":1}"#, .unknown),
        (.patch, #"[{"op":"add","path":"/a","value":1}]"#, "application/json-patch+json", 200, #"{"a":1}"#, .unknown),
        (.delete, "", "", 404, "", .present(nil)), (.delete, "", "", 410, "", .present(nil)), (.delete, "", "", 200, "{}", .unknown),
    ]

    @Test(arguments: items)
    func anItemShowsWhetherTheWriteIsInIt(
        method: HTTPRequest.Method, body: String, type: String, status: Int, now: String, effect: ObservedEffect
    ) throws {
        #expect(try judged(search(method, "/v1/notes/7", body, Self.notes, [.contentType: type]), status, now) == effect)
    }

    /// Only a strong tag that is still current proves that the same condition protects the next attempt.
    @Test(
        arguments: [
            ("\"1\"", "\"1\"", 200, ObservedEffect.absent), ("\"1\"", "\"2\"", 200, .unknown), ("\"1\"", nil, 200, .unknown),
            ("W/\"1\"", "W/\"1\"", 200, .unknown), (nil, "\"1\"", 200, .unknown), ("\"1\"", "\"1\"", 404, .unknown),
            ("*", "\"1\"", 200, .unknown),
        ] as [(String?, String?, Int, ObservedEffect)])
    func absentIsSaidOnlyBehindACondition(condition: String?, current: String?, status: Int, effect: ObservedEffect) throws {
        var fields: HTTPFields = [:]
        fields[.ifMatch] = condition
        let patch = search(.patch, "/v1/notes/7", #"{"title":"a"}"#, Self.notes, fields)
        #expect(try judged(patch, status, #"{"title":"old"}"#, etag: current) == effect)
    }

    @Test func theIDsOfACollection() {
        let body = Array(#"[{"id":1},{"id":"x"},{"no":2},{"id":null}]"#.utf8)
        #expect(EffectProbe.ids(in: body, resource: Self.notes) == ["1", "x"])
        #expect(EffectProbe.ids(in: Array("{}".utf8), resource: Self.notes) == nil)
    }
}
