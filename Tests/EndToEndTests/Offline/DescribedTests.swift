// An API is known by its own description: one that it names and a client has read, or one that the operator names
// (docs/outbox.md#descriptions).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct DescribedTests {
    private static let type = "Content-Type: application/json"
    private static let item = ##"{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Note"}}}}"##
    private static let document = #"""
        {
          "openapi": "3.1.0",
          "paths": {
            "/notes": { "get": {}, "post": { "responses": { "201": {} } } },
            "/notes/{id}": { "get": { "responses": { "200": \#(item) } } }
          },
          "components": { "schemas": { "Note": { "properties": { "id": { "type": "integer" } } } } }
        }
        """#
    private static let play: PlayedSite.Play = { asked in
        switch "\(asked.method) \(asked.path)" {
        case "GET /notes":
            .text(#"[{"id":1,"text":"a"},{"id":2,"text":"b"}]"#, type, #"Link: </openapi.json>; rel="service-desc""#)
        case "GET /openapi.json": .text(document, type)
        default: .text("{}", status: 404, type)
        }
    }

    /// Waits until the notes are known, and checks that they are shown away with what was written.
    private func areKnown(_ world: PlayedWorld) async throws {
        let known = try await eventualValue("the notes") {
            try await world.server.get("/v1/learned").json?["items"]?.array?.first { $0["state"] == "learned" }
        }
        #expect(known["collection"] == "/notes" && known["resource"]?["item"] == "/notes/{id}", "\(known)")
        #expect(known["reason"]?.string?.contains("description") == true, "\(known)")
        try await world.turn("offline")
        _ = try await world.send("POST", "/notes", fields: [Self.type], body: #"{"text":"away"}"#)
        _ = try await world.send("PATCH", "/notes/2", fields: [Self.type], body: #"{"text":"edited"}"#)
        let list = try await world.get("/notes").json?.array ?? []
        #expect(list.map { $0["text"]?.string } == ["a", "edited", "away"] && list.allSatisfy { $0["id"]?.integer != nil }, "\(list)")
    }

    @Test func oneThatTheAPINamesCountsOnceAClientHasReadIt() async throws {
        try await PlayedWorld.with(upstream: ["resources": "learned"], Self.play) { world in
            try await #expect(world.get("/notes").status == 200)
            try await world.stored("/notes")
            #expect(world.site.count("/openapi.json") == 0, "nothing is asked of an API that no client asks")
            try await #expect(world.get("/openapi.json").status == 200)
            try await areKnown(world)
            #expect(world.site.count("/openapi.json") == 1)
        }
    }

    @Test func oneThatTheOperatorNamesIsFetched() async throws {
        try await PlayedWorld.with(upstream: ["resources": "learned", "learn": ["description": "/openapi.json"]], Self.play) { world in
            try await eventually("the description is asked for") { world.site.count("/openapi.json") == 1 }
            try await #expect(world.get("/notes").status == 200)
            try await areKnown(world)
            #expect(world.site.count("/openapi.json") == 1)
        }
    }

    // MARK: lists without entries

    /// An API whose list is empty, and its description.
    struct EmptyAPI: Sendable, CustomTestStringConvertible {
        var list: String
        var body: String
        /// The fields of its answer.
        var fields: [String]
        var description: String
        var document: String
        /// The array of the list, and the id of its entries.
        var items: String
        var id: String

        var testDescription: String { description }

        var play: PlayedSite.Play {
            { asked in
                switch "\(asked.method) \(asked.path)" {
                case "GET \(list)": PlayedSite.Said(fields: fields, body: Array(body.utf8))
                case "GET \(description)": .text(document, "Content-Type: application/\(document.hasPrefix("<") ? "xml" : "yaml")")
                default: .text("{}", status: 404, "Content-Type: application/json")
                }
            }
        }
    }

    private static let yaml = """
        openapi: 3.0.3
        paths:
          /notes:
            get: { responses: { 200: { content: { application/json: { schema: { properties: { results: { items: &note { $ref: '#/n' } } } } } } } } }
            post: { responses: { 201: {} } }
          /notes/{id}:
            get: { responses: { 200: { content: { application/json: { schema: *note } } } } }
        n: { properties: { id: { type: integer }, text: { type: string } } }
        """
    private static let metadata = """
        <edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"><edmx:DataServices>
        <Schema Namespace="S" xmlns="http://docs.oasis-open.org/odata/ns/edm">
        <EntityType Name="N"><Key><PropertyRef Name="NoteID"/></Key><Property Name="NoteID" Type="Edm.Int32"/></EntityType>
        <EntityContainer Name="C"><EntitySet Name="Notes" EntityType="S.N"/></EntityContainer>
        </Schema></edmx:DataServices></edmx:Edmx>
        """

    @Test(arguments: [
        EmptyAPI(
            list: "/notes", body: #"{"results":[]}"#, fields: [type, #"Link: </openapi.yaml>; rel="service-desc""#],
            description: "/openapi.yaml", document: yaml, items: "results", id: "id"),
        EmptyAPI(
            list: "/odata/Notes", body: #"{"@odata.context":"$metadata#Notes","value":[]}"#, fields: [type + ";odata.metadata=minimal"],
            description: "/odata/$metadata", document: metadata, items: "value", id: "NoteID"),
    ])
    func anEmptyListShowsACreateAway(api: EmptyAPI) async throws {
        try await PlayedWorld.with(upstream: ["resources": "learned"], api.play) { world in
            try await #expect(world.get(api.list).status == 200)
            try await world.stored(api.list)
            try await #expect(world.get(api.description).status == 200)
            let known = try await eventualValue("the notes") {
                try await world.server.get("/v1/learned").json?["items"]?.array?.first { $0["state"] == "learned" }
            }
            #expect(known["collection"] == .string(api.list), "\(known)")
            try await world.turn("offline")
            _ = try await world.send("POST", api.list, fields: [Self.type], body: #"{"text":"away"}"#)
            let list = try await world.get(api.list).json?[api.items]?.array ?? []
            #expect(list.map { $0["text"]?.string } == ["away"] && list.allSatisfy { $0[api.id]?.integer != nil }, "\(list)")
            #expect(world.site.count(api.description) == 1)
        }
    }
}
