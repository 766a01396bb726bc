// docs/outbox.md#descriptions: what OpenAPI documents say of an API's collections, and what they confirm.
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct APIDescriptionTests {
    private static let note = ##"{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Note"}}}}}"##
    private static let list = #"[{"id":1,"text":"a"},{"id":2,"text":"b"}]"#

    /// A document of OpenAPI 3 with these paths.
    private static func document(_ paths: String, _ more: String = "") -> String {
        let wrapped = ##"{"properties":{"note":{"$ref":"#/components/schemas/Note"}}}"##
        let schemas = #"{"Note":{"properties":{"id":{"type":"integer"}}},"Wrapped":\#(wrapped)}"#
        return #"{"openapi":"3.1.0","paths":{\#(paths)},"components":{"schemas":\#(schemas)}\#(more)}"#
    }

    private static func described(_ text: String, target: String = "/openapi.json") throws -> APIDescription? {
        APIDescription(try JSONValue.parse(Array(text.utf8)), target: target)
    }

    private static let item = #""/notes/{id}":{"get":{"responses":\#(note)},"delete":{}}"#
    private static let plain = #""/notes":{"get":{},"post":{"responses":{"201":{}}}},\#(item)"#

    @Test(
        arguments: [
            (document(plain), "/notes", "/notes /notes/{id} creates"),
            (document(#""/notes":{"get":{}},"/notes/{id}":{"get":{"responses":\#(note)}}"#), "/notes", "/notes /notes/{id}"),
            // A slash at the end, keys, suffixes, parents, and servers below a path.
            (document(#""/notes/":{"get":{}},"/notes/{n}/":{"get":{"responses":\#(note)}}"#), "/notes/", "/notes/ /notes/{id}/"),
            (document(#""/Notes":{"get":{}},"/Notes({n})":{"get":{"responses":\#(note)}}"#), "/Notes", "/Notes /Notes({id})"),
            (
                document(#""/notes.json":{"get":{}},"/notes/{n}.json":{"get":{"responses":\#(note)}}"#), "/notes.json",
                "/notes.json /notes/{id}.json"
            ),
            (
                document(#""/p/{p}/notes":{"get":{}},"/p/{p}/notes/{n}":{"get":{"responses":\#(note)}}"#), "/p/4/notes",
                "/p/4/notes /p/4/notes/{id}"
            ),
            (document(plain, #","servers":[{"url":"https://api.example/v1/"}]"#), "/v1/notes", "/v1/notes /v1/notes/{id} creates"),
            (document(plain, #","servers":[{"url":"v2"}]"#), "/v2/notes", "/v2/notes /v2/notes/{id} creates"),
            // An envelope.
            (
                document(plain.replacing("schemas/Note", with: "schemas/Wrapped")), "/notes", "/notes /notes/{id} envelope /note creates"
            ),
            (
                #"{"swagger":"2.0","basePath":"/v1","paths":{"/notes":{"get":{}},"/notes/{id}":{"get":{"responses":{"200":{"schema":{"properties":{"id":{}}}}}}}}}"#,
                "/v1/notes", "/v1/notes /v1/notes/{id}"
            ),
        ])
    func aListWhoseItemsAreDescribedIsKnown(document: String, path: String, known: String) throws {
        let description = try #require(try Self.described(document))
        var learner = ResourceLearner([.get(path, Self.list)])
        #expect(learner.words.isEmpty)
        #expect(learner.note(description, owner: "anna") == [.learned(path)])
        #expect(learner.words == [known])
        // In the other order, and after a restart.
        var other = ResourceLearner()
        #expect(other.note(description, owner: "anna").isEmpty)
        other = ResourceLearner(json: other.json)
        #expect(other.knows(description, owner: "anna"))
        #expect(other.note(.get(path, Self.list)) == [.learned(path)])
        #expect(other.words == [known] && ResourceLearner(json: other.json).words == [known])
    }

    @Test(arguments: [
        "{}", "[]", #"{"openapi":"3.1.0"}"#, #"{"openapi":"4.0","paths":{}}"#, document(""), document(#""/notes":{"get":{}}"#),
        document(#""/notes/{id}":{"get":{"responses":\#(note)}}"#), document(#""/notes":{"post":{}},"/notes/{id}":{"get":{}}"#),
        document(#""/notes":{"get":{}},"/other/{id}":{"get":{}}"#), document(plain, #","servers":[{"url":"/{tenant}"}]"#),
    ])
    func whatDescribesNoCollectionIsNone(_ document: String) throws {
        let description = try Self.described(document)
        #expect(description == nil)
    }

    @Test func aBodyThatIsNotDescribedConfirmsNothing() throws {
        for body in ["{}", ##"{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/None"}}}}}"##] {
            let description = try #require(
                try Self.described(Self.document(#""/notes":{"get":{}},"/notes/{id}":{"get":{"responses":\#(body)}}"#)))
            var learner = ResourceLearner([.get("/notes", Self.list)])
            #expect(learner.note(description, owner: "anna").isEmpty)
            #expect(learner.words.isEmpty)
        }
    }

    @Test func aReferenceThatLeadsInCirclesEnds() throws {
        let body = ##"{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}"##
        let schemas = ##"{"A":{"$ref":"#/components/schemas/A"}}"##
        let paths = #"{"/n":{"get":{}},"/n/{id}":{"get":{"responses":\#(body)}}}"#
        let text = #"{"openapi":"3.0.0","paths":\#(paths),"components":{"schemas":\#(schemas)}}"#
        #expect(try Self.described(text)?.collections.first?.envelope == nil)
    }

    @Test func aDescriptionOfOneIdentityIsNoEvidenceForAnother() throws {
        let description = try #require(try Self.described(Self.document(Self.plain)))
        var learner = ResourceLearner([.get("/notes", Self.list, owner: "bert")])
        #expect(learner.note(description, owner: "anna").isEmpty)
        #expect(learner.note(.get("/notes", Self.list, owner: "anna")) == [.learned("/notes")])
        let changed = learner.forget(owner: "anna")
        #expect(changed && learner.words.isEmpty && !learner.knows(description, owner: "anna"))
        // One that the operator has named counts for all.
        #expect(learner.note(description, owner: StoragePartition.shared.name).isEmpty)
        #expect(learner.note(.get("/notes", Self.list, owner: "bert")) == [.learned("/notes")])
    }

    @Test func whatAnAnswerHasContradictedIsNotConfirmedAgain() throws {
        let description = try #require(try Self.described(Self.document(Self.plain)))
        var learner = ResourceLearner([.get("/notes", Self.list)])
        _ = learner.note(description, owner: "anna")
        #expect(learner.note(.get("/notes/1", #"{"error":"moved"}"#)).count == 1)
        #expect(learner.words.isEmpty)
        #expect(learner.note(.get("/notes", Self.list)).isEmpty)
        #expect(learner.words.isEmpty)
    }

    // MARK: what a document shows of lists

    private static let reference = ##"{"$ref":"#/S/Note"}"##
    private static let plainList = #"{"type":"array","items":\#(reference)}"#
    private static let page = #"{"properties":{"total":{"type":"integer"},"results":\#(plainList)}}"#
    private static let number = #"{"id":{"type":"integer"},"text":{}}"#
    private static let named = #"{"id":{"type":"integer"},"login":{"type":"string"}}"#

    /// A document whose notes have these members, and whose list has this schema.
    private static func shown(_ members: String, list: String, item: String = "/notes/{id}", _ more: String = "") -> String {
        let get = { (schema: String) in #""get":{"responses":{"200":{"content":{"application/json":{"schema":\#(schema)}}}}}"# }
        let list = #""/notes":{\#(get(list)),"post":{"responses":{"201":{}}}}"#
        let entry = #""\#(item)":{\#(get(reference))}"#
        return #"{"openapi":"3.0.3","paths":{\#(list),\#(entry)\#(more)},"S":{"Note":{"properties":\#(members)}}}"#
    }

    @Test(
        arguments: [
            (shown(number, list: plainList), "[]", "/notes /notes/{id} creates", .number),
            (shown(number, list: page), #"{"total":0,"results":[]}"#, "/notes /notes/{id} items /results creates", .number),
            (shown(#"{"id":{"type":"string","format":"uuid"}}"#, list: plainList), "[]", "/notes /notes/{id} creates", .uuid),
            (shown(#"{"slug":{"type":"string"}}"#, list: plainList), "[]", "/notes /notes/{id} id /slug creates", .text),
            // The member that the path names is the id.
            (shown(named, list: plainList, item: "/notes/{login}"), "[]", "/notes /notes/{id} id /login creates", .text),
            (
                shown(named, list: plainList, item: "/notes/{login}"), #"[{"id":1,"login":"anna"}]"#,
                "/notes /notes/{id} id /login creates", .text
            ),
        ] as [(String, String, String, IdentifierForm)])
    func anEmptyListIsKnownAsTheDocumentShowsIt(document: String, list: String, known: String, ids: IdentifierForm) throws {
        let description = try #require(try Self.described(document))
        var learner = ResourceLearner()
        #expect(learner.note(description, owner: "anna").isEmpty, "nobody has used the path")
        learner = ResourceLearner(json: learner.json)
        #expect(learner.note(.get("/notes", list)) == [.learned("/notes")])
        #expect(learner.words == [known] && learner.resources.first?.learned?.ids == ids)
    }

    @Test(
        arguments: [
            // The list has another form than the document says, or no place for entries.
            (shown(number, list: page), #"[{"id":1,"text":"a"}]"#), (shown(number, list: page), #"{"results":{}}"#),
            (shown(number, list: plainList), #"{"results":[]}"#), (shown(number, list: plainList), #"[{"text":"a"}]"#),
            // Neither the document nor an entry tells the places, or the form of ids.
            (shown(number, list: "{}"), "[]"), (shown(#"{"id":{}}"#, list: plainList), "[]"),
            (shown(#"{"id":{"type":["integer","null"]}}"#, list: plainList), "[]"),
            (shown(number, list: #"{"items":{"properties":{"name":{}}}}"#), "[]"),
            // Two lists in one answer.
            (shown(number, list: #"{"properties":{"a":\#(plainList),"b":\#(plainList)}}"#), #"{"a":[],"b":[]}"#),
        ])
    func aListThatIsNotAsTheDocumentShowsItIsNotKnown(document: String, list: String) throws {
        let description = try #require(try Self.described(document))
        var learner = ResourceLearner([.get("/notes", list)])
        #expect(learner.note(description, owner: "anna").isEmpty)
        #expect(learner.note(.get("/notes", list)).isEmpty)
        #expect(learner.words.isEmpty)
    }

    @Test func aShapeOfADescriptionEndsWithTheFirstContradiction() throws {
        let description = try #require(try Self.described(Self.shown(Self.number, list: Self.plainList)))
        var learner = ResourceLearner()
        _ = learner.note(description, owner: "anna")
        #expect(learner.note(.get("/notes", "[]")) == [.learned("/notes")])
        #expect(learner.note(.get("/notes", #"[{"text":"a"}]"#)).count == 1)
        #expect(learner.words.isEmpty)
        // Nor is it confirmed by a description again.
        #expect(learner.note(.get("/notes", "[]")).isEmpty)
        #expect(learner.words.isEmpty)
    }

    @Test func otherPathsOfTheDocumentAreNoEntries() throws {
        let paths = #","/notes/search":{"get":{}},"/notes/tags":{"post":{}},"/notes/{id}/tags":{"get":{}}"#
        let description = try #require(
            try Self.described(Self.shown(#"{"id":{"type":"string"}}"#, list: Self.plainList, paths)))
        var learner = ResourceLearner()
        _ = learner.note(description, owner: "anna")
        learner = ResourceLearner(json: learner.json)
        #expect(learner.note(.get("/notes", "[]")) == [.learned("/notes")])
        #expect(learner.resources.first?.learned?.others == ["search", "tags"])
    }

    @Test(
        arguments: [
            #"{"openapi":"3.0.0","paths":["/notes"]}"#, #"{"openapi":3.0,"paths":{}}"#,
            #"{"openapi":"3.0.0","paths":{"/n":7,"/n/{id}":[]}}"#,
            #"{"openapi":"3.0.0","paths":{"/n/{id}":{"get":{}},"/n/{id}/m/{id}":{"get":{}}}}"#,
            shown(#"["id"]"#, list: "7"), shown("true", list: #"{"items":[]}"#), shown(#"{"id":7}"#, list: #"{"items":{"properties":7}}"#),
            shown(number, list: ##"{"$ref":"#/paths/~1notes/get/responses/200/content/application~1json/schema"}"##),
            shown(##"{"id":{"$ref":"#/S/Note/properties/id"}}"##, list: plainList),
            shown(number, list: ##"{"items":{"$ref":"https://other.example/#/S/Note"}}"##),
        ])
    func documentsOfAnyFormAreReadToTheirEnd(document: String) throws {
        let description = try Self.described(document)
        var learner = ResourceLearner()
        if let description { _ = learner.note(description, owner: "anna") }
        for path in ["/notes", "/n"] { #expect(learner.note(.get(path, "[]")).isEmpty) }
        #expect(learner.words.isEmpty)
    }

    @Test(.timeLimit(.minutes(1))) func manyPathsAreBounded() throws {
        let paths = (0..<5_000).map { #""/p\#($0)":{"get":{}},"/p\#($0)/{id}":{"get":{}}"# }
        #expect(try Self.described(Self.document(paths.joined(separator: ",")))?.collections.count == APIDescription.collectionLimit)
    }

    @Test(
        arguments: [
            (#"</openapi.json>; rel="service-desc""#, ["https://api.example/openapi.json"]),
            (#"<next>; rel=next, <../api>; rel="service-desc"; type="application/json""#, ["https://api.example/api"]),
            ("<https://api.example/a>; rel=service-desc", ["https://api.example/a"]),
            ("<https://other.example/a>; rel=service-desc", []), ("</a>; rel=describedby", []), ("", []),
        ] as [(String, [String])])
    func linksToDescriptionsAreThoseOfTheOrigin(link: String, urls: [String]) {
        let answer = ResponseHead(status: 200, fields: [.link: link])
        let request = RequestHead(method: .get, origin: Traffic.origin, target: "/v1/notes")
        #expect(APIDescription.links(in: answer, to: request) == urls)
    }
}
