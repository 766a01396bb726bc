// Resources that `rockpool init` proposes from descriptions and samples (docs/reference/cli.md#init).
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct InitTests {
    private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

    /// The configuration of a proposal, as `config check` reads it.
    private func checked(_ api: ProposedAPI) throws -> Upstream {
        let place = "https://api.example.com"
        let yaml = try ProposedConfiguration(place: place, name: "api.example.com", api: api).checked(named: "rockpool.yaml")
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

    @Test func squashingIsOfferedForResources() throws {
        let place = "https://api.example.com"
        var api = ProposedAPI()
        #expect(!ProposedConfiguration(place: place, name: "api", api: api).entry.joined().contains("squash"))
        api.add(ProposedResource(collection: "/v1/notes", item: "/v1/notes/{id}"))
        let yaml = try ProposedConfiguration(place: place, name: "api", api: api).checked(named: "r.yaml")
        let taken = yaml.replacing("# queue: {", with: "queue: {")
        let loaded = try ConfigurationSources(environment: [:]).load(yaml: taken, named: "r.yaml")
        #expect(loaded.configuration.upstreams.first?.queue.squash == .safe && loaded.warnings.isEmpty, "\(taken)")
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
        #expect(resource.items == "/data" && resource.offlineResponse == nil)
        reading.note(method: "GET", path: "/records/a", status: 200, body: try json(#"{"data": {"id": "a"}}"#))
        let known = try #require(try checked(reading.proposal()).resources.first)
        #expect(known.envelope == "/data" && known.offlineResponse == .optimistic)
    }

    /// Without an ETag a member that changes with each write is the version; without one of those, changes are found by comparing.
    @Test(arguments: [(true, "rev", "etag"), (false, "rev", "/rev"), (false, "title", "etag")])
    func theVersionOfAnAPIWithoutETags(hasETag: Bool, member: String, version: String) throws {
        var reading = SampleReading()
        let entry = "{\"id\": \"a\", \"\(member)\": 1}"
        reading.note(method: "GET", path: "/records", status: 200, body: try json("{\"data\": [\(entry)]}"), hasETag: hasETag)
        reading.note(method: "GET", path: "/records/a", status: 200, body: try json("{\"data\": \(entry)}"), hasETag: hasETag)
        let resource = try #require(try checked(reading.proposal()).resources.first)
        #expect(resource.version == version && resource.envelope == "/data" && resource.offlineResponse == .optimistic)
    }

    /// Entries that are not at the path that was guessed get no reply made up for it.
    @Test(arguments: [#"[{"id": "a"}]"#, #"{"data": [{"id": "a"}]}"#]) func anEntryThatIsNotFoundIsNotOptimistic(list: String) throws {
        var reading = SampleReading()
        reading.note(method: "GET", path: "/records", status: 200, body: try json(list))
        reading.note(method: "GET", path: "/records/a", status: 404, body: try json(#"{"error": "no"}"#))
        let resource = try #require(try checked(reading.proposal()).resources.first)
        #expect(resource.offlineResponse == nil)
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

    // MARK: hostile APIs

    /// What ends a line, or a comment, in some version of YAML, in JSON or in a diff, and what ends a value.
    private static let ends = [
        "\n", "\r", "\r\n", "\u{85}", "\u{2028}", "\u{2029}", "\u{B}", "\u{C}", "\u{0}", "\u{FEFF}", "\" ", "' ", " #", "\\n", "}", "\t",
        "\u{202E}",
    ]

    /// A text as a JSON string.
    private func quoted(_ text: String) -> String { String(decoding: JSONValue.string(text).serialized(), as: UTF8.self) }

    /// The proposal of a description whose every name holds `text`.
    private func described(_ text: String) throws -> ProposedAPI {
        let schema =
            "{\"type\": \"object\", \"properties\": {\(quoted(text)): {\"type\": \"array\"}, \"id\": {}, \(quoted("updated" + text)): {}}}"
        let get = "{\"get\": {\"responses\": {\"200\": {\"content\": {\"application/json\": {\"schema\": \(schema)}}}}}}"
        let paths = ["/notes", "/notes/{\(text)}", "/\(text)", "/\(text)/{id}", "/{a}/\(text)/{id}"].map { "\(quoted($0)): \(get)" }
        let servers = "[{\"url\": \(quoted("https://a/" + text))}]"
        let found = try ["", "\"servers\": \(servers), ", "\"basePath\": \(quoted("/" + text)), "].map { base in
            OpenAPIReading(document: try json("{\"openapi\": \"3.0.0\", \(base)\"paths\": {\(paths.joined(separator: ", "))}}")).proposal()
        }
        var all = ProposedAPI()
        for api in found {
            for resource in api.resources where !all.resources.map(\.collection).contains(resource.collection) { all.add(resource) }
            all.notes += api.notes
        }
        all.source = text
        return all
    }

    /// The proposal of samples whose every name holds `text`.
    private func sampled(_ text: String) throws -> ProposedAPI {
        var reading = SampleReading()
        let entry = "{\"id\": \"a\", \(quoted(text)): \"x\", \"updated\": 7}"
        let bodies = [
            ("/notes", "{\(quoted(text)): [\(entry)]}"), ("/notes/a", "{\(quoted(text)): \(entry)}"), ("/plain", "[\(entry)]"),
            ("/" + text, "[\(entry)]"), ("/lists", "[{\(quoted(text)): 1}]"),
        ]
        for (path, body) in bodies {
            reading.note(method: "GET", path: path, status: 200, body: try json(body), cacheControl: "no-store")
        }
        return reading.proposal()
    }

    /// Names of an API reach comments and values, and no name becomes a key of the configuration.
    @Test(arguments: ends) func noNameOfAnAPIWritesConfiguration(end: String) throws {
        let text = "x\(end)notify: [{ on: [dead], command: [/bin/sh, -c, id] }]\(end)- via: http://evil.test\(end)      #"
        for api in [try described(text), try sampled(text)] {
            let place = "https://api.example.com"
            let yaml = try ProposedConfiguration(place: place, name: "api", api: api).checked(named: "r.yaml")
            let read = try ConfigurationSources(environment: [:]).load(yaml: yaml, named: "r.yaml").configuration
            #expect(read.notify.isEmpty && read.upstreams.count == 1 && read.upstreams[0].parent == nil && read.upstreams[0].refresh == nil)
            #expect(read.upstreams[0].resources.map(\.collection).allSatisfy(ForeignText.isPlain))
            for scalar in yaml.unicodeScalars where scalar != "\n" {
                #expect(
                    scalar.value >= 0x20 && scalar.value != 0x7F && (scalar.value < 0x80 || scalar.properties.isAlphabetic),
                    "\(scalar.value)")
            }
            let before = "upstreams:\n  - name: api\n    origin: https://a\n"
            var patch = ConfigurationPatch(file: "r.yaml", text: before)
            guard patch.add(api.resources, toUpstreamAt: 2, resourcesAt: nil) else { continue }
            try patch.check(
                adds: ["api": api.resources], to: ConfigurationSources(environment: [:]).load(yaml: before, named: "").configuration)
            #expect(patch.text.split(separator: "\n").dropFirst(3).allSatisfy { $0.hasPrefix(" ") || $0.hasPrefix("+    ") })
        }
    }

    /// The text is compared with what was meant, whatever wrote it.
    @Test func aDiffThatChangesMoreIsRefused() throws {
        let before = "upstreams:\n  - name: api\n    origin: https://a\n  - name: other\n    origin: https://b\n"
        let loaded = try ConfigurationSources(environment: [:]).load(yaml: before, named: "r.yaml").configuration
        let resources = [ProposedResource(collection: "/new", item: "/new/{id}")]
        var patch = ConfigurationPatch(file: "r.yaml", text: before)
        let isAdded = patch.add(resources, toUpstreamAt: 4, resourcesAt: nil)
        #expect(isAdded)
        try patch.check(adds: ["other": resources], to: loaded)
        #expect(throws: CommandFailure.self) { try patch.check(adds: ["api": resources], to: loaded) }
        var otherwise = loaded
        otherwise.proxy.noProxy = ["x.test"]
        #expect(throws: CommandFailure.self) { try patch.check(adds: ["other": resources], to: otherwise) }
    }

    @Test func aNameThatIsNotWrittenIsNoted() {
        var api = ProposedAPI()
        api.add(ProposedResource(collection: "/a\u{2028}b", item: "/a/{id}"))
        api.add(ProposedResource(collection: "/notizen/größe", item: "/a/{id}"))
        #expect(api.resources.map(\.collection) == ["/notizen/größe"] && api.notes.count == 1)
    }

    // MARK: documents that stand for more than they are

    private func value(_ yaml: String) -> JSONValue? { DocumentText.value(of: Array(yaml.utf8)) }

    private static func bomb(_ width: Int, levels: Int, end: String) -> String {
        let level = { (number: Int) in "- &a\(number) [\(Array(repeating: "*a\(number - 1)", count: width).joined(separator: ", "))]\n" }
        return "- &a0 [x, x]\n" + (1...levels).map(level).joined() + end
    }

    @Test(arguments: [
        bomb(9, levels: 9, end: "- *a9\n"), bomb(2, levels: 60, end: "- *a60\n"),
        bomb(2, levels: 60, end: "- { *a60 : x, ? [*a60, *a59] : y }\n"),
        bomb(2, levels: 60, end: "- ? *a60\n  : x\n"), bomb(2, levels: 60, end: "").replacing("\n- ", with: "\u{2028}- "),
        "- &a0 \(String(repeating: "[", count: 900))\(String(repeating: "]", count: 900))\n"
            + (1...60).map { "- &a\($0) \(String(repeating: "[", count: 900))*a\($0 - 1)\(String(repeating: "]", count: 900))\n" }.joined(),
    ])
    func aliasesThatStandForTooMuchAreRefused(yaml: String) {
        #expect(value(yaml) == nil)
        #expect(throws: ConfigurationError.self) { try ConfigurationSources(environment: [:]).load(yaml: "x: \n" + yaml, named: "r.yaml") }
    }

    @Test func aliasesAreResolved() throws {
        let nested = try json(#"{"a": {"b": [1, "two"]}, "c": {"b": [1, "two"]}, "d": ["two", {"b": [1, "two"]}], "two": "e"}"#)
        #expect(value("a: &x { b: [1, &y two] }\nc: *x\nd: [*y, *x]\n*y : e\n") == nested)
        #expect(try value("a: &x 1\nb: &x 2\nc: *x\n") == json(#"{"a": 1, "b": 2, "c": 2}"#))
        #expect(value("a: &x 1\nb: *y\n") == nil)
        // Asterisks of texts remain, whatever stands for those of aliases.
        let texts = try json("{\"a\": \"*x \u{E000}*x\", \"b\": \"see *x, *x\", \"c\": \"*x\", \"d\": \"* *x\\n\"}")
        #expect(value("a: &x \"*x \u{E000}*x\"\nb: see *x, *x\nc: '*x'\nd: |\n  * *x\n") == texts)
    }

    /// Each schema names the next one several times, or itself.
    @Test(.timeLimit(.minutes(1))) func schemasThatNameEachOtherAreReadOnce() throws {
        let names = (0..<40).map { number -> String in
            let next = Array(repeating: ##"{"$ref": "#/components/schemas/S\##((number + 1) % 40)"}"##, count: 100).joined(separator: ",")
            return ##""S\##(number)": {"properties": {"p\##(number)": {}}, "allOf": [\##(next)]}"##
        }
        let answer =
            ##"{"get": {"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}}}}"##
        let document = try json(
            ##"{"openapi": "3.1.0", "paths": {"/a": \##(answer), "/a/{id}": \##(answer)}, "components": {"schemas": {\##(names.joined(separator: ","))}}}"##
        )
        #expect(OpenAPIReading(document: document).proposal().resources.count == 1)
    }
}
