// docs/outbox.md#graphql: what selects the response of a GraphQL request, and what its errors mean.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct GraphQLRequestTests {
    private func request(_ text: String) -> GraphQLRequest? { GraphQLRequest(body: Array(text.utf8)) }

    /// A stand-in for SHA-256 that is equal for equal bytes.
    private func key(_ text: String) -> String? {
        request(text).map { String(decoding: $0.keyText { "h\($0.count)" }, as: UTF8.self) }
    }

    @Test func theSpellingOfTheBodyDoesNotMatter() {
        let first = key(#"{"query": "{ me { name } }", "variables": {"b": 1, "a": {"y": 2, "x": [1, {"d": 1, "c": 2}]}}}"#)
        let second = key(#"{"variables":{"a":{"x":[1,{"c":2,"d":1}],"y":2},"b":1},"query":"{ me { name } }"}"#)
        #expect(first != nil && first == second)
    }

    @Test(arguments: [
        #"{"query": "{ me { nickname } }"}"#, #"{"query": "{ me { name } }", "variables": {"a": 1}}"#,
        #"{"query": "{ me { name } }", "operationName": "Me"}"#,
    ])
    func everythingElseDoes(other: String) { #expect(key(other) != key(#"{"query": "{ me { name } }"}"#)) }

    @Test func aDocumentAndItsHashHaveOneKey() {
        let byHash = key(#"{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "H15"}}, "variables": {"a": 1}}"#)
        #expect(byHash == key(#"{"query": "{ me { name } }", "variables": {"a": 1}}"#))
        let hashed = request(#"{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "AB"}}}"#)
        #expect(hashed?.kind == .unknown && hashed?.hash == "ab" && hashed?.document == nil)
    }

    @Test func theKindIsThatOfTheNamedOperation() {
        #expect(request(#"{"query": "mutation M { a } query Q { b }", "operationName": "Q"}"#)?.kind == .query)
        #expect(request(#"{"query": "mutation M { a } query Q { b }", "operationName": "M"}"#)?.kind == .mutation)
        #expect(request(#"{"query": "subscription S { a }"}"#)?.kind == .subscription)
    }

    @Test(arguments: ["[]", "", "{}", #"{"query": 1}"#, #"[{"query": "{ a }"}]"#, "not json"])
    func noRequest(text: String) { #expect(request(text) == nil) }

    @Test func variablesAreNamedByPointers() throws {
        let asked = try #require(request(#"{"query": "{ a }", "variables": {"input": {"id": 17}, "name": "x", "all": []}}"#))
        let named = try ["/input/id", "/name", "/all"].map { asked.variable(try #require(JSONPointer($0))) }
        #expect(named == ["17", "x", nil])
    }

    @Test func errorsAreFoundWhateverTheStatus() {
        let error = { (text: String) in GraphQLResponse.error(in: Array(text.utf8)) }
        #expect(error(#"{"errors": [{"message": "no such note"}], "data": null}"#) == "no such note")
        #expect(error(#"[{"data": {}}, {"errors": [{"message": "b"}]}]"#) == "b")
        #expect(error(#"{"data": {"errors": [1]}}"#) == nil && error(#"{"data": {}, "errors": []}"#) == nil && error("") == nil)
    }

    @Test(arguments: [
        ("mutation A($t: String!) { add(title: $t) { id title } }", ["add"]),
        ("mutation { x: add(t: 1) { id } remove(id: 2) }", ["x", "remove"]),
        ("mutation A { add @include(if: true) { id } ...F } fragment F on Mutation { other }", ["add"]),
        ("fragment F on Note { id } mutation A { add { ...F } }", ["add"]),
    ])
    func aQueuedMutationIsAResponseWithoutValues(document: String, names: [String]) {
        let body: JSONValue = ["query": .string(document)]
        let reply = GraphQLResponse.queued(["id": "x"], to: body.serialized())
        #expect(reply["data"]?.object.map { $0.map(\.name) } == names && reply["extensions"]?["rockpool"]?["id"] == "x")
    }

    @Test func ofSeveralOperationsTheNamedOneIsAnswered() {
        let body: JSONValue = ["query": "mutation A { a } mutation B { b }", "operationName": "B"]
        #expect(GraphQLResponse.queued([:], to: body.serialized())["data"]?.object.map { $0.map(\.name) } == ["b"])
    }
}
