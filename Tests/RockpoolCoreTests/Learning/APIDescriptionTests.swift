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
