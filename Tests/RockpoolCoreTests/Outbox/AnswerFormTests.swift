// docs/outbox.md#optimistic-replies *Form*: what an API answers to a write, and the reply that stands in for it.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct AnswerFormTests {
    private static let origin = OriginAddress(scheme: .http, host: "api.example")
    private static let json: HTTPFields = [.contentType: "application/vnd.api+json"]
    private static let notes = Resource(collection: "/notes", item: "/notes/{id}")

    private func form(
        _ method: HTTPRequest.Method, _ target: String, _ body: String = #"{"title":"a"}"#, status: Int, _ answer: String?,
        _ fields: HTTPFields = AnswerFormTests.json, resource: Resource = AnswerFormTests.notes
    ) -> AnswerForm? {
        var configuration = Configuration()
        configuration.upstreams = [Upstream(name: "a", origin: Self.origin, resources: [resource])]
        let request = RequestHead(method: method, origin: Self.origin, target: target)
        let plan = RouteTable(configuration).plan(for: request)
        return AnswerForm(
            AnsweredWrite(
                request: request, body: Array(body.utf8), answer: ResponseHead(status: status, fields: fields),
                answerBody: answer.map { Array($0.utf8) }, entity: plan.entity))
    }

    @Test func formsOfAnswers() {
        let type = "application/vnd.api+json"
        let item = { (status: Int) in AnswerForm(status: status, content: .item, type: type) }
        #expect(form(.post, "/notes", status: 201, #"{"id":7,"title":"a"}"#) == item(201))
        #expect(form(.post, "/notes", status: 200, #"{"id":7,"title":"a"}"#) == item(200))
        #expect(form(.put, "/notes/7", status: 200, #"{"id":7,"title":"a","rev":2}"#) == item(200))
        #expect(form(.patch, "/notes/7", status: 204, nil) == AnswerForm(status: 204))
        #expect(form(.delete, "/notes/7", "", status: 200, #"{"id":7,"title":"a"}"#) == item(200))
        #expect(
            form(.delete, "/notes/7", "", status: 200, #"{"deleted":true}"#)
                == AnswerForm(status: 200, content: .fixed(#"{"deleted":true}"#), type: type))
        #expect(form(.delete, "/notes/7", "", status: 200, "", [:]) == AnswerForm(status: 200))
        let located: HTTPFields = [.location: "/notes/7"]
        #expect(form(.post, "/notes", status: 201, "", located) == AnswerForm(status: 201, names: true))
        #expect(
            form(.post, "/notes", status: 201, "", located)?.bareStatus == nil
                && form(.put, "/notes/7", status: 204, nil)?.bareStatus == 204)
    }

    /// What may be another answer the next time has no form.
    @Test func otherAnswersHaveNone() {
        #expect(form(.delete, "/notes/7", "", status: 200, #"{"deleted":7}"#) == nil)
        #expect(form(.delete, "/notes/7", "", status: 200, #"{"at":"2026-11-29"}"#) == nil)
        #expect(form(.put, "/notes/7", status: 200, #"{"id":8,"title":"a"}"#) == nil)
        #expect(form(.put, "/notes/7", status: 200, "<p>ok</p>", [.contentType: "text/html"]) == nil)
        let limit = AnswerForm.fixedLimit - 8
        #expect(form(.delete, "/notes/7", "", status: 200, #"{"a":""# + String(repeating: "x", count: limit) + #""}"#) != nil)
        #expect(form(.delete, "/notes/7", "", status: 200, #"{"a":""# + String(repeating: "x", count: limit + 1) + #""}"#) == nil)
        for status in [202, 206, 207, 302, 400, 404, 412, 500] {
            #expect(form(.patch, "/notes/7", status: status, "{}") == nil, "\(status)")
        }
    }

    /// Whether an API keeps the keys that creates give is shown by the answers to creates that give one (docs/outbox.md#chosen-keys).
    @Test func answersToCreatesShowWhetherKeysAreKept() {
        func keeps(_ body: String, _ answer: String?, _ fields: HTTPFields = Self.json) -> Bool? {
            form(.post, "/notes", body, status: 201, answer, fields)?.keepsKeys
        }
        #expect(keeps(#"{"id":"k","t":1}"#, #"{"id":"k","t":1}"#) == true && keeps(#"{"id":70}"#, #"{"id":70}"#) == true)
        #expect(keeps(#"{"id":"k","t":1}"#, #"{"id":7,"t":1}"#) == false)
        #expect(keeps(#"{"id":"k"}"#, "", [.location: "/notes/k"]) == true && keeps(#"{"id":"k"}"#, "", [.location: "/notes/7"]) == false)
        #expect(keeps(#"{"t":1}"#, #"{"id":7,"t":1}"#) == nil)
        for none in ["0", "-1", "null", "\"\"", "[]", "true", "\"loc_01a20e71-df26-7584-8591-79e50b8bf1cc\""] {
            #expect(keeps("{\"id\":\(none)}", #"{"id":7}"#) == nil, "\(none)")
        }
        #expect(form(.put, "/notes/7", #"{"id":7,"t":1}"#, status: 200, #"{"id":7,"t":1}"#)?.keepsKeys == nil)
    }

    /// A create without a key does not change what is known of keys; one whose key was not kept does.
    @Test func whatIsKnownOfKeysLastsUntilAnAnswerShowsOtherwise() {
        let route = WriteRoute(name: "POST notes")
        func form(_ keepsKeys: Bool?) -> AnswerForm {
            var form = AnswerForm(status: 201, content: .item, type: "application/json")
            form.keepsKeys = keepsKeys
            return form
        }
        var answers = EmptyAnswers()
        for (seen, known) in [(nil, nil), (true, true), (nil, true), (false, false), (nil, false), (true, true)] as [(Bool?, Bool?)] {
            _ = answers.note(form(seen), for: route)
            #expect(answers.form(for: route)?.keepsKeys == known)
        }
    }

    @Test func formsAreStoredAsText() {
        let forms = [
            AnswerForm(status: 204), AnswerForm(status: 201, names: true),
            AnswerForm(status: 200, content: .item, type: "application/json"),
            AnswerForm(status: 201, content: .item, type: "application/hal+json; charset=utf-8", names: true),
            AnswerForm(status: 200, content: .fixed("{\n \"a\": true }"), type: "text/json"),
            AnswerForm(status: 200, content: .fixed(""), type: nil),
        ]
        for form in forms {
            for keepsKeys in [nil, true, false] as [Bool?] {
                var form = form
                form.keepsKeys = keepsKeys
                #expect(AnswerForm(text: form.text) == form, "\(form.text)")
            }
        }
        #expect(AnswerForm(status: 204).text == "204", "as earlier versions have stored it")
        for text in ["", "x", "200 else", "200 fixed"] { #expect(AnswerForm(text: text) == nil, "\(text)") }
    }

    // MARK: replies

    private func write(_ method: HTTPRequest.Method, _ body: String = #"{"title":"b"}"#) -> FoldedWrite {
        FoldedWrite(sequence: 1, method: method, isItem: method != .post, id: method == .post ? "loc_1" : "7", body: Array(body.utf8))
    }

    private let known: JSONValue = ["id": 7, "title": "a", "more": true]

    private func reply(_ method: HTTPRequest.Method, _ form: AnswerForm?, base: JSONValue? = nil) -> OptimisticReply? {
        OptimisticReply.decide(write(method), base: base, baseIsKnown: base != nil, resource: Self.notes, form: form)
    }

    @Test func repliesHaveTheFormOfTheAPIs() {
        let item = AnswerForm(status: 200, content: .item, type: "a/b+json")
        let created: JSONValue = ["title": "b", "id": "loc_1"]
        #expect(reply(.post, item) == OptimisticReply(status: 200, content: .item(created), type: "a/b+json"))
        #expect(reply(.post, AnswerForm(status: 201, names: true)) == OptimisticReply(status: 201))
        #expect(reply(.patch, AnswerForm(status: 204), base: known) == OptimisticReply(status: 204))
        #expect(reply(.delete, item, base: known) == OptimisticReply(status: 200, content: .item(known), type: "a/b+json"))
        #expect(reply(.delete, item) == OptimisticReply(status: 204), "the item is not known")
        let fixed = AnswerForm(status: 200, content: .fixed("{}"), type: "application/json")
        #expect(reply(.delete, fixed) == OptimisticReply(status: 200, content: .fixed("{}"), type: "application/json"))
        #expect(reply(.delete, nil) == OptimisticReply(status: 204))
    }

    @Test func aPutThatReplacesSaysNothingOfOneThatCreates() {
        #expect(reply(.put, AnswerForm(status: 204), base: known) == OptimisticReply(status: 204))
        #expect(reply(.put, AnswerForm(status: 204))?.status == 201)
        #expect(reply(.put, AnswerForm(status: 201, content: .item), base: known)?.status == 200)
    }

    /// Without a base the result of a PATCH is not known, whatever its answer looks like.
    @Test func whatCannotBeComputedStays202() { #expect(reply(.patch, AnswerForm(status: 204)) == nil) }
}

@Suite struct TotalTests {
    private let orders = Resource(collection: "/orders", item: "/orders/{id}", items: "/_embedded/orders")
    private let create = FoldedWrite(sequence: 1, method: .post, isItem: false, id: "loc_1", body: Array(#"{"n":1}"#.utf8))

    @Test(arguments: ["total", "count", "totalElements", "total_items", "@odata.count"])
    func numbersThatCountTheItemsFollow(name: String) {
        for place in [[], ["page"], ["meta"], ["meta", "pagination"], ["_embedded"]] {
            var body: JSONValue = ["_embedded": ["orders": [["id": 1]]]]
            let one: JSONValue = 1
            var about: JSONValue = .object(JSONObject([(name, one)]))
            for token in place.reversed() { about = .object(JSONObject([(token, about)])) }
            body = body.merging(about)
            let fold = CollectionFold.fold(body, query: nil, with: [create], resource: orders)
            #expect(JSONPointer(tokens: place + [name]).get(in: fold.value) == 2 && fold.growth == 1, "\(place)")
            let delete = FoldedWrite(sequence: 2, method: .delete, isItem: true, id: "1")
            let less = CollectionFold.fold(body, query: nil, with: [delete], resource: orders)
            #expect(JSONPointer(tokens: place + [name]).get(in: less.value) == 0 && less.growth == -1, "\(place)")
        }
    }

    /// A number below that of the items counts something else.
    @Test func otherNumbersStay() {
        let body: JSONValue = ["count": 1, "_embedded": ["orders": [["id": 1], ["id": 2]]], "size": 2]
        let value = CollectionFold.fold(body, query: nil, with: [create], resource: orders).value
        #expect(value["count"] == 1 && value["size"] == 2)
    }

    @Test func fieldsOfTheHeadFollow() throws {
        let name = try #require(HTTPField.Name("X-Total-Count"))
        for (text, growth, result) in [("3", 1, "4"), ("3", -3, "0"), ("3", -4, "3"), ("3", 0, "3"), ("many", 1, "many")] {
            var fields: HTTPFields = [name: text]
            fields.countItems(growth)
            #expect(fields[name] == result)
        }
    }
}
