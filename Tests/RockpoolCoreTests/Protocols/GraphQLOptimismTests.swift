// docs/outbox.md#graphql: with `offline_response: optimistic` a queued mutation is answered from its own arguments.
import RockpoolCore
import Testing

@Suite struct GraphQLOptimismTests {
    private func data(_ query: String, _ variables: JSONValue = [:]) -> String {
        let body: JSONValue = ["query": .string(query), "variables": variables]
        let response = GraphQLResponse.queued("queued", to: body.serialized(), isOptimistic: true)
        return String(decoding: (response["data"] ?? .null).serialized(), as: UTF8.self)
    }

    @Test func membersHaveTheValuesOfTheirArguments() {
        #expect(data("mutation { addNote(text: \"low\", n: 2) { id text n } }") == #"{"addNote":{"id":null,"text":"low","n":2}}"#)
        let variables: JSONValue = ["input": ["text": "high", "tags": ["a"]]]
        let query =
            "mutation M($input: NoteInput!) { a: editNote(id: 7, input: $input) { ...F } } fragment F on Note { id t: text tags { x } }"
        #expect(data(query, variables) == #"{"a":{"id":7,"t":"high","tags":null}}"#)
        #expect(data("mutation { done(id: 1) @x(a: 1) other { id } }") == #"{"done":null,"other":{"id":null}}"#)
    }
}
