// Resources that `rockpool init` proposes from descriptions and samples (docs/reference/cli.md#init).
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct InitTests {
    private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

    /// The configuration of a proposal, as `config check` reads it.
    private func checked(_ api: ProposedAPI) throws -> Upstream {
        let origin = OriginAddress(scheme: .https, host: "api.example.com")
        let yaml = ProposedConfiguration(origin: origin, name: "api.example.com", api: api).yaml
        let loaded = try ConfigurationSources(environment: [:]).load(yaml: yaml, named: "rockpool.yaml")
        #expect(loaded.warnings.isEmpty, "\(loaded.warnings)")
        return try #require(loaded.configuration.upstreams.first)
    }

    @Test func aDescriptionNamesCollectionsAndItems() throws {
        let yaml = """
            openapi: 3.0.3
            servers: [{ url: "https://api.example.com/v1" }]
            paths:
              /notes:
                get: { responses: { "200": { content: { application/json: { schema: { type: object, properties: {
                  data: { type: array, items: { $ref: "#/components/schemas/Note" } }, next: { type: string } } } } } } } }
                post: { responses: { "201": { description: made } } }
              /notes/{noteId}:
                get: { responses: { "200": { content: { application/json: { schema: { type: object, properties: {
                  data: { $ref: "#/components/schemas/Note" } } } } } } } }
                put: {}
              /users/{user}/keys: { get: {} }
              /users/{user}/keys/{key}: { get: {} }
              /health: { get: {} }
            components:
              schemas:
                Base: { properties: { uuid: { type: string } } }
                Note: { allOf: [{ $ref: "#/components/schemas/Base" }, { properties: { updated_at: { type: string } } }] }
            """
        let document = try #require(DocumentText.value(of: Array(yaml.utf8)))
        let reading = OpenAPIReading(document: document)
        #expect(reading.isDescription)
        let api = reading.proposal()
        #expect(api.notes.count == 1 && api.notes[0].hasPrefix("/v1/users/{user}/keys/{key}"))
        let resource = try #require(try checked(api).resources.first)
        #expect(resource.collection == "/v1/notes" && resource.item == "/v1/notes/{id}" && resource.items == "/data")
        #expect(resource.envelope == "/data" && resource.id == "/uuid" && resource.updatedAt == "/updated_at")
        #expect(resource.offlineResponse == .optimistic)
    }

    @Test func aHundredPathsPassTheCheck() throws {
        let paths = (1...100).map { #""/things\#($0)": {"get": {}, "post": {}}, "/things\#($0)/{id}": {"get": {}, "delete": {}}"# }
        let document = try json("{\"openapi\": \"3.1.0\", \"paths\": {\(paths.joined(separator: ","))}}")
        #expect(try checked(OpenAPIReading(document: document).proposal()).resources.count == 100)
    }

    @Test func samplesShowListsIdsAndTimes() throws {
        let har = try json(
            """
            {"log": {"entries": [
              {"request": {"method": "GET", "url": "https://api.example.com/v1/records?limit=9"}, "response": {"status": 200, "content":
                {"text": "{\\"data\\": [{\\"id\\": \\"a\\", \\"last_modified\\": 7}]}"}}},
              {"request": {"method": "GET", "url": "https://api.example.com/v1/records/a"}, "response": {"status": 200, "content":
                {"text": "{\\"data\\": {\\"id\\": \\"a\\"}, \\"permissions\\": {}}"}}},
              {"request": {"method": "GET", "url": "https://other.example.com/v1/x"}, "response": {"status": 200, "content": {"text": "[]"}}}
            ]}}
            """)
        var reading = SampleReading()
        #expect(reading.note(har: har, origin: OriginAddress(scheme: .https, host: "api.example.com")) == 2)
        let resource = try #require(try checked(reading.proposal()).resources.first)
        #expect(resource.collection == "/v1/records" && resource.items == "/data" && resource.envelope == "/data")
        #expect(resource.updatedAt == "/last_modified" && resource.id == "/id")
    }

    /// What the API forbids to store is stored by a route, or nothing could be read offline.
    @Test func aNoStoreCollectionGetsARoute() throws {
        var reading = SampleReading()
        reading.note(method: "GET", path: "/v1/records", status: 200, body: try json(#"[{"id": "a"}]"#), cacheControl: "no-cache, No-Store")
        let upstream = try checked(reading.proposal())
        #expect(upstream.routes.count == 2 && upstream.routes.allSatisfy { $0.store == .always })
        var other = SampleReading()
        other.note(method: "GET", path: "/v1/records", status: 200, body: try json(#"[{"id": "a"}]"#), cacheControl: "no-cache")
        try #expect(checked(other.proposal()).routes.isEmpty)
    }

    /// Without an entry it is not known whether entries are wrapped as lists are.
    @Test func aWrappedListAloneIsNotOptimistic() throws {
        var reading = SampleReading()
        reading.note(method: "GET", path: "/records", status: 200, body: try json(#"{"data": [{"id": "a"}]}"#))
        let resource = try #require(try checked(reading.proposal()).resources.first)
        #expect(resource.items == "/data" && resource.offlineResponse == .accepted)
        reading.note(method: "GET", path: "/records/a", status: 200, body: try json(#"{"data": {"id": "a"}}"#))
        let known = try #require(try checked(reading.proposal()).resources.first)
        #expect(known.envelope == "/data" && known.offlineResponse == .optimistic)
    }

    @Test func thePathOfAnEntry() throws {
        #expect(SampleReading.path(of: try json(#"{"id": 7}"#), in: "/notes") == "/notes/7")
        #expect(SampleReading.path(of: try json(#"{"uuid": "a b/c"}"#), in: "/notes") == "/notes/a%20b%2Fc")
        #expect(SampleReading.path(of: try json(#"{"name": "x"}"#), in: "/notes") == nil)
    }

    @Test(arguments: [
        "upstreams:\n  - name: api\n    origin: https://a\n  - name: other\n    origin: https://b\n",
        "upstreams:\n- origin: https://a\n  name: api\n",
        "upstreams:\n  - name: api\n    origin: https://a\n    resources:\n      - { collection: /old, item: \"/old/{id}\" }\n",
    ])
    func aDiffDeclaresTheResourcesInItsUpstream(yaml: String) throws {
        let lines = yaml.split(separator: "\n")
        let line = try #require(lines.firstIndex { $0.contains("name: api") }) + 1
        let resources = lines.firstIndex { $0.hasSuffix("resources:") }.map { $0 + 1 }
        var patch = ConfigurationPatch(file: "r.yaml", text: yaml)
        let isAdded = patch.add([ProposedResource(collection: "/new", item: "/new/{id}")], toUpstreamAt: line, resourcesAt: resources)
        #expect(isAdded)
        #expect(patch.text.hasPrefix("--- r.yaml\n+++ r.yaml\n@@ -"))
        let patched = try applied(patch.text, to: yaml)
        let upstreams = try ConfigurationSources(environment: [:]).load(yaml: patched, named: "r.yaml").configuration.upstreams
        #expect(upstreams.first { $0.name == "api" }?.resources.contains { $0.collection == "/new" } == true, "\(patched)")
    }

    /// Applies the one hunk of a diff that only adds lines.
    private func applied(_ diff: String, to text: String) throws -> String {
        let start = try #require(diff.firstMatch(of: /@@ -([0-9]+),1/).flatMap { Int($0.1) })
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let added = diff.split(separator: "\n").filter { $0.hasPrefix("+") && !$0.hasPrefix("+++") }.map { String($0.dropFirst()) }
        lines.insert(contentsOf: added, at: start)
        return lines.joined(separator: "\n")
    }

    @Test func anAPIOfWhichNothingIsKnownIsDeclaredToo() throws {
        #expect(try checked(ProposedAPI()).resources.isEmpty)
    }
}
