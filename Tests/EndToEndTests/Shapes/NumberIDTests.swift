// New entries that the API has not made yet have ids of the type of its own, and are found under them ever after (docs/outbox.md#local-ids).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct NumberIDTests {
    private static let projects: JSONValue = [
        ["collection": "/nested/projects", "item": "/nested/projects/{id}", "offline_response": "optimistic"],
        [
            "collection": "/nested/projects/{project}/tasks", "item": "/nested/projects/{project}/tasks/{id}",
            "offline_response": "optimistic",
        ],
    ]

    /// The id in a reply to a create, which is a number and that of its `Location`.
    private func number(_ created: Curl, in collection: String) throws -> Int64 {
        let id = try #require(created.json?["id"]?.integer, "\(created.text)")
        #expect(created.status == 201 && created["location"] == "\(collection)/\(id)" && created["rockpool-local-id"] == "\(id)")
        #expect(id < 1 << 53)
        return id
    }

    @Test func whereIDsAreNumbersSoAreThoseOfNewEntries() async throws {
        try await ShapedWorld.with(Self.projects) { world in
            for path in ["/nested/projects", "/nested/projects/1/tasks"] { try await #expect(world.get(path).status == 200) }
            try await world.turn("offline")
            let project = try await number(world.send("POST", "/nested/projects", ["name": "away"]), in: "/nested/projects")
            try await #expect(world.get("/nested/projects").json?.array?.compactMap { $0["id"]?.integer } == [1, 2, project])
            // No list of this project was read: those of others tell.
            let tasks = "/nested/projects/\(project)/tasks"
            let sent: JSONValue = ["title": "a", "project": .number(JSONNumber(project)), "see": .string("/projects/\(project)")]
            let task = try await number(world.send("POST", tasks, sent), in: tasks)

            try await #expect(world.server.stop() == .exit(0))
            try await world.server.start()
            try await world.turn("offline")
            try await #expect(world.send("PATCH", "\(tasks)/\(task)", ["title": "b"]).status == 200)
            try await #expect(world.get(tasks).json?.array?.compactMap { $0["title"]?.string } == ["b"])
            let other = try await number(world.send("POST", "/nested/projects", ["name": "later"]), in: "/nested/projects")
            #expect(other != project)

            try await world.comeBack()
            let made = try await world.direct("/nested/projects/3/tasks/1").json
            #expect(made?["title"] == "b" && made?["project"] == 3 && made?["see"] == "/projects/3", "\(String(describing: made))")
            try await #expect(!world.arrived().contains { $0.contains("\(project)") || $0.contains("\(task)") })
            let known = try await world.get("\(tasks)/\(task)")
            #expect(known.status == 200 && known.json?["id"] == 1 && known["content-location"]?.hasSuffix("/3/tasks/1") == true)
            try await #expect(world.send("PATCH", "/nested/projects/\(other)", ["name": "last"]).status == 200)
            try await #expect(world.direct("/nested/projects/4").json?["name"] == "last")
        }
    }

    @Test func whereIDsAreTextsSoAreThoseOfNewEntries() async throws {
        let articles: JSONValue = [["collection": "/jsonapi/articles", "profile": "jsonapi", "offline_response": "optimistic"]]
        try await ShapedWorld.with(articles) { world in
            try await #expect(world.get("/jsonapi/articles").status == 200)
            try await world.turn("offline")
            let article: JSONValue = ["data": ["type": "articles", "attributes": ["title": "away"]]]
            let created = try await world.send("POST", "/jsonapi/articles", article, ["Content-Type: application/vnd.api+json"])
            #expect(created.json?["data"]?["id"]?.string?.hasPrefix("loc_") == true, "\(created.text)")
            try await world.comeBack()
        }
    }
}
