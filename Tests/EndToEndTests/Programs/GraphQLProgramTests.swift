// gql against a GraphQL server: queries offline, mutations answered at once from their arguments, in the lane of their variable.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct GraphQLProgramTests {
    /// Runs the steps that are named in its arguments (`put:ID:TEXT`) and prints one line for each.
    private static let client = """
        import gql, json, sys
        from gql.transport.requests import RequestsHTTPTransport
        client = gql.Client(transport=RequestsHTTPTransport(url=sys.argv[1], retries=0, timeout=20))
        steps = {
            "put": ("mutation Put($id: ID!, $text: String!) { put(id: $id, text: $text) { id text } }", ["id", "text"]),
            "add": ("mutation Add($text: String!) { add(text: $text) { id text } }", ["text"]),
            "remove": ("mutation Remove($id: ID!) { remove(id: $id) }", ["id"]),
            "list": ("query Notes { notes { id text } }", []),
        }
        for step in sys.argv[2:]:
            name, *values = step.split(":")
            document, names = steps[name]
            try:
                said = client.execute(gql.GraphQLRequest(document, variable_values=dict(zip(names, values))))
                print(json.dumps(said, sort_keys=True, separators=(",", ":")), flush=True)
            except Exception as error:
                print(type(error).__name__, flush=True)
        """

    private static let python = Python.with("gql", "graphql", "requests")
    private static let script = URL(filePath: #filePath).appending(path: "../../../programs/graphql_server.py").standardized.path

    @Test(.enabled(if: Self.python != nil, "gql or graphql-core is not installed"))
    func mutationsAreAnsweredAtOnceAndKeepTheOrderOfTheirVariable() async throws {
        let (python, scratch, port) = (try #require(Self.python), try Scratch(), FreePort.next())
        let program = try await ChildProcess("/usr/bin/env", [python, Self.script, "\(port)"], directory: scratch.path)
        try await eventually("the program", within: .seconds(60)) { try await Curl.send("GET", "http://127.0.0.1:\(port)/").status == 200 }
        let route: JSONValue = ["match": "POST /graphql", "kind": "graphql", "lane": "/id", "offline_response": "optimistic"]
        let server = try await ServerProcess.start(ServerSettings(upstream: port, ["routes": [route]]))
        let run = { (steps: [String]) in
            let words = [python, "-c", Self.client, "http://\(server.gateway)/graphql"]
            return try await Command.run("/usr/bin/env", words + steps, within: .seconds(60)).output.split(separator: "\n").map(String.init)
        }
        try await #expect(
            run(["put:a:low", "list"]) == [#"{"put":{"id":"a","text":"low"}}"#, #"{"notes":[{"id":"a","text":"low"}]}"#])
        _ = try await server.change("PUT", "/v1/network", ["mode": "offline"])
        let away = try await run(["list", "put:a:high", "put:b:new", "add:more", "remove:a"])
        let expected = [
            #"{"notes":[{"id":"a","text":"low"}]}"#, #"{"put":{"id":"a","text":"high"}}"#, #"{"put":{"id":"b","text":"new"}}"#,
            #"{"add":{"id":null,"text":"more"}}"#, #"{"remove":null}"#,
        ]
        #expect(away == expected)
        let lanes = try await server.operations().compactMap { $0["lane"]?.string }
        #expect(lanes.count == 4 && lanes[0] == lanes[3] && Set(lanes).count == 3, "\(lanes)")
        _ = try await server.change("PUT", "/v1/network", ["mode": "auto"])
        try await server.outboxIsEmpty()
        let notes = try JSONValue.parse(Array(try Files.text(of: scratch.path + "/notes.json").utf8)).array?.first?.array ?? []
        #expect(notes.compactMap { $0.array?.last?.string } == ["new", "more"], "\(notes)")
        program.signal(SIGKILL)
        _ = try await program.ending()
        // Without its server the list is the last one that was read, and a mutation waits.
        try await #expect(run(["put:c:last"]) == [#"{"put":{"id":"c","text":"last"}}"#])
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
    }
}
