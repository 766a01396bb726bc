// A GraphQL mutation is never classified as a query, whatever its document contains.
import RockpoolCore
import Testing

@Suite struct GraphQLOperationTests {
    @Test(
        arguments: [
            (##"{"query": "{ notes { id } }"}"##, .query), (##"{"query": "query { notes }"}"##, .query),
            (##"{"query": "query All($n: Int = 3) @x { notes(first: $n) { id } }"}"##, .query),
            (##"{"query": "mutation { add }"}"##, .mutation),
            (##"{"query": "  ,\n mutation Add($i: I = {a: 1}) { add(i: $i) }"}"##, .mutation),
            (##"{"query": "# query {\nmutation { add }"}"##, .mutation), (##"{"query": "subscription { added }"}"##, .subscription),
            (##"{"query": "fragment mutation on N { id } query { ...mutation }"}"##, .query),
            (##"{"query": "query A { a } mutation B { b }", "operationName": "A"}"##, .query),
            (##"{"query": "query A { a } mutation B { b }", "operationName": "B"}"##, .mutation),
            (##"{"query": "query A { a } mutation B { b }"}"##, .mutation),
            (##"{"query": "query A { a } mutation B { b }", "operationName": "C"}"##, .unknown),
            (##"{"query": "{ a(s: \"} mutation {\") }"}"##, .query),
            (##"{"query": "{ a(s: \"\"\"} mutation { \\\"\"\" \"\"\") }"}"##, .query),
            (##"{"query": "{ mutation { id } }"}"##, .query), (##"{"query": "query mutation { a }"}"##, .query),
            (##"{"extensions": {"persistedQuery": {"sha256Hash": "x"}}}"##, .unknown),
            (##"[{"query": "{ a }"}, {"query": "mutation { b }"}]"##, .mutation), (##"[{"query": "{ a }"}]"##, .query),
            (##"{"name": "no GraphQL"}"##, nil), (##"{"query": 3}"##, nil), ("rubbish", nil), ("[]", nil),
        ] as [(String, GraphQLOperation?)])
    func kindOfABody(_ body: String, expected: GraphQLOperation?) {
        #expect(GraphQLOperation.of(body: Array(body.utf8)) == expected)
    }
}
