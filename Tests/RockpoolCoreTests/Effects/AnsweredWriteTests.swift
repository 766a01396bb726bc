// What an answer says about the target of a write (docs/outbox.md#effects; RFC 9110 §6.4.2, §9.3, §10.2.2, §15).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct AnsweredWriteTests {
    private static let origin = OriginAddress(scheme: .https, host: "api.example.com")
    private static let json: HTTPFields = [.contentType: "application/json"]

    private func write(
        _ method: HTTPRequest.Method, _ target: String, _ status: Int, _ fields: HTTPFields = json, _ body: String? = nil,
        entity: EntityMatch? = nil
    ) -> AnsweredWrite {
        AnsweredWrite(
            request: RequestHead(method: method, origin: Self.origin, target: target), body: nil,
            answer: ResponseHead(status: status, fields: fields), answerBody: body.map { Array($0.utf8) }, entity: entity)
    }

    @Test(arguments: [
        (HTTPRequest.Method.put, 200, AnsweredWrite.Outcome.applied), (.put, 201, .applied), (.patch, 204, .applied),
        (.delete, 202, .applied), (.post, 303, .applied), (.put, 301, .none), (.put, 307, .none), (.put, 304, .none), (.put, 400, .none),
        (.put, 409, .none), (.put, 412, .none), (.put, 422, .none), (.delete, 500, .none), (.put, 404, .absent), (.delete, 404, .absent),
        (.patch, 410, .absent), (.delete, 410, .absent), (.post, 404, .none), (.post, 410, .none),
    ])
    func theStatusSaysWhatHappened(_ method: HTTPRequest.Method, _ status: Int, _ outcome: AnsweredWrite.Outcome) {
        #expect(write(method, "/notes/1", status).outcome == outcome)
    }

    @Test func onlyASuccessWithAJSONObjectIsARepresentation() {
        let object = #"{"id":"1"}"#
        let coded: HTTPFields = [.contentType: "application/json", .contentEncoding: "gzip"]
        #expect(write(.put, "/notes/1", 200, Self.json, object).answerValue?["id"] == "1")
        #expect(write(.post, "/notes", 201, Self.json, object).answerValue?["id"] == "1")
        for other in [
            write(.put, "/notes/1", 202, Self.json, object), write(.put, "/notes/1", 207, Self.json, object),
            write(.put, "/notes/1", 422, Self.json, object), write(.put, "/notes/1", 200, Self.json, "[1]"),
            write(.put, "/notes/1", 200, Self.json, #""text""#), write(.put, "/notes/1", 200, Self.json, "{"),
            write(.put, "/notes/1", 200, [.contentType: "text/html"], object), write(.put, "/notes/1", 200, coded, object),
            write(.put, "/notes/1", 200, Self.json, nil),
        ] { #expect(other.answerValue == nil, "\(other)") }
    }

    @Test(arguments: [
        ("/notes/1", true), ("https://api.example.com/notes/1", true), ("1", true), ("/notes/2", false), ("/notes/1?v=2", false),
        ("https://other.example/notes/1", false),
    ])
    func contentLocationNamesTheTarget(_ location: String, _ isTarget: Bool) {
        #expect(write(.put, "/notes/1", 200, [.contentLocation: location]).answersWithTarget == isTarget)
        #expect(!write(.put, "/notes/1", 202, [.contentLocation: location]).answersWithTarget)
        #expect(!write(.put, "/notes/1", 200).answersWithTarget)
    }

    private static let collection = EntityMatch(resource: .notes, path: "/notes", isItem: false, collection: "/notes")

    @Test func aCreatedItemIsAtItsLocationOrBelowTheCollection() {
        let url = "https://api.example.com/notes/9"
        let located: HTTPFields = [.contentType: "application/json", .location: "/notes/9"]
        let elsewhere: HTTPFields = [.contentType: "application/json", .location: "https://other.example/notes/8"]
        let byLocation = write(.post, "/notes", 201, located, nil, entity: Self.collection).created
        #expect(byLocation == ServerMapping(id: ServerID(text: "9"), url: url))
        let byBody = write(.post, "/notes", 201, Self.json, #"{"id":9}"#, entity: Self.collection).created
        #expect(byBody == ServerMapping(id: ServerID(text: "9", isNumber: true), url: url))
        #expect(write(.post, "/notes", 201, elsewhere, #"{"id":"9"}"#, entity: Self.collection).created?.url == url)
        #expect(write(.post, "/notes", 201, Self.json, "{}", entity: Self.collection).created == nil)
        #expect(write(.post, "/notes", 201, Self.json, nil, entity: Self.collection).created == nil)
        #expect(write(.post, "/notes", 422, located, nil, entity: Self.collection).created == nil)
        #expect(write(.put, "/notes/9", 201, located, nil, entity: Self.collection).created == nil)
    }

    @Test func anActionCreatesNothingAndIsNotTheEntity() {
        let located: HTTPFields = [.contentType: "application/json", .location: "/notes/9"]
        let action = EntityMatch(resource: .notes, path: "/notes/1", id: "1", action: "copy", isItem: true, collection: "/notes")
        let item = EntityMatch(resource: .notes, path: "/notes/1", id: "1", isItem: true, collection: "/notes")
        #expect(write(.post, "/notes/1/copy", 201, located, nil, entity: action).created == nil)
        #expect(!write(.post, "/notes/1/copy", 200, entity: action).addressesEntity)
        #expect(write(.put, "/notes/1", 200, entity: item).addressesEntity)
        #expect(write(.put, "/anything", 200).addressesEntity, "an undeclared path is its own entity")
    }
}
