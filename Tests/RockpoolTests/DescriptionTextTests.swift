// docs/outbox.md#descriptions: the languages of API descriptions, and texts that cost more to read than a description may.
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct DescriptionTextTests {
    private func paths(_ text: String) -> [String]? {
        APIDescription(Array(text.utf8), target: "/openapi", document: DocumentText.described)?.paths
    }

    private static let openAPI3 = """
        openapi: 3.0.3
        paths:
          /notes:
            get: { responses: { 200: { content: { application/json: { schema: { type: array, items: &note { $ref: '#/n' } } } } } } }
          /notes/{id}:
            get:
              responses:
                '200': { content: { application/json: { schema: *note } } }
        n: { properties: { id: { type: integer } } }
        """
    private static let swagger2 = """
        swagger: "2.0"
        basePath: /v1
        paths: { /notes: { get: {} }, "/notes/{id}": { delete: {} } }
        """

    @Test(arguments: [
        (openAPI3, ["/notes"]), (swagger2, ["/v1/notes"]), (swagger2.replacing("\"2.0\"", with: "2.0"), ["/v1/notes"]),
        (#"{"openapi":"3.1.0","paths":{"/notes":{"get":{}},"/notes/{id}":{"get":{}}}}"#, ["/notes"]),
    ])
    func descriptionsAreReadInYAMLAsInJSON(text: String, expected: [String]) { #expect(paths(text) == expected) }

    private static let bomb =
        "a: &a0 [x, x]\n" + (1...40).map { "b\($0): &a\($0) [*a\($0 - 1), *a\($0 - 1)]\n" }.joined() + swagger2

    @Test(
        .timeLimit(.minutes(1)),
        arguments: [bomb, swagger2 + "\nx: *none", swagger2 + "\n\tx", "--- a\n--- b\n", "<p>no YAML: &</p>", ""])
    func otherTextsAreNone(text: String) { #expect(paths(text) == nil) }

    /// Each of them takes seconds to read, where a description of its length takes one.
    @Test(.timeLimit(.minutes(1))) func textsOfMoreNodesThanDescriptionsHaveAreNotRead() {
        for text in ["b,", "- - ", "[", "a:\n"].map({ String(repeating: $0, count: 600_000) }) { #expect(paths(text) == nil) }
        #expect(paths("x: [\(String(repeating: "b,", count: 600_000))]\n" + Self.swagger2) == nil)
        #expect(paths("x: \"\(String(repeating: "b ", count: 600_000))\"\n" + Self.swagger2) == ["/v1/notes"])
    }
}
