// GraphQL over POST: a query is a read that is served offline, a mutation is always a write (docs/reference/configuration.md#routes `cache:
// body`).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(2)), .serialized) struct GraphQLTests {
    private static let route: JSONValue = ["routes": [["match": "POST /graphql", "cache": "body"]]]
    private static let query = #"{"query":"query Notes { notes { id title } }","operationName":"Notes"}"#
    private static let mutation = #"{"query":"mutation Add { addNote(title: \"new\") { id } }","operationName":"Add"}"#

    /// An API that answers with the length of the request body.
    private static func answer(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        .text(#"{"data":{"asked":\#(asked.body.count)}}"#, "Content-Type: application/json", "Cache-Control: max-age=60")
    }

    private func with(_ body: (PlayedWorld) async throws -> Void) async throws {
        try await PlayedWorld.with(upstream: Self.route, { Self.answer($0) }) { world in try await body(world) }
    }

    private func post(_ body: String, _ world: PlayedWorld) async throws -> Curl {
        try await world.send("POST", "/graphql", fields: ["Content-Type: application/json"], body: body)
    }

    @Test func aQueryIsThereOffline() async throws {
        try await with { world in
            let online = try await post(Self.query, world)
            #expect(online.status == 200 && online.json?["data"] != nil, "\(online.text)")
            try await world.stored("/graphql")
            try await world.turn("offline")
            let offline = try await post(Self.query, world)
            #expect(offline.status == 200 && offline.body == online.body, "\(offline.status) \(offline.text)")
            #expect(offline["cache-status"]?.contains("hit") == true, "\(offline["cache-status"] ?? "none")")
            #expect(world.site.count("/graphql") == 1)
            try await #expect(world.server.operations().isEmpty)
        }
    }

    @Test func aMutationIsNeverAnsweredFromTheCache() async throws {
        try await with { world in
            for count in 1...2 {
                try await #expect(post(Self.mutation, world).status == 200)
                #expect(world.site.count("/graphql") == count)
            }
            try await world.turn("offline")
            let offline = try await post(Self.mutation, world)
            #expect([202, 503].contains(offline.status), "\(offline.status) \(offline.text)")
            #expect(world.site.count("/graphql") == 2)
            try await world.turn("auto")
            // A mutation that was refused instead of queued must be sent again by its client.
            if offline.status == 503 { try await #expect(post(Self.mutation, world).status == 200) }
            try await eventually("the mutation at its upstream") { world.site.count("/graphql") == 3 }
            #expect(world.site.asked.allSatisfy { $0.path != "/graphql" || $0.body == Self.mutation })
            try await world.server.outboxIsEmpty()
        }
    }

    @Test func aQueryThatIsNotStoredIsAMissAndNeverQueued() async throws {
        try await with { world in
            try await #expect(post(Self.query, world).status == 200)
            try await world.stored("/graphql")
            try await world.turn("offline")
            let another = #"{"query":"{ notes { id } }"}"#
            expectProblem(try await post(another, world), "offline-miss", 504)
            try await #expect(world.server.operations().isEmpty)
            try await world.turn("auto")
            try await Task.sleep(for: .milliseconds(500))
            #expect(world.site.count("/graphql") == 1)
            try await #expect(post(another, world).status == 200)
        }
    }

    /// A route with `cache: body` on a path that looks like GraphQL.
    @Test(arguments: [("POST /graphql", true), ("POST /api/graphql", true), ("/v2/graphql", true), ("POST /v1/search", false)])
    func theCheckNamesTheKindOfRoute(_ match: String, _ isWarned: Bool) async throws {
        let members: JSONValue = ["routes": [["match": .string(match), "cache": "body"]]]
        let server = try ServerProcess.prepare(ServerSettings(upstream: FreePort.next(), members))
        let check = try await server.command("config", "check")
        #expect(check.status == 0, "\(check.errors)")
        #expect((check.output + check.errors).contains("kind: graphql") == isWarned, "\(check.output) \(check.errors)")
    }
}
