// Collections and items whose paths have other shapes than `/notes` and `/notes/{id}`, away and back (docs/reference/configuration.md#shapes-of-paths).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct ShapeTests {
    private static let projects: JSONValue = [
        ["collection": "/nested/projects", "item": "/nested/projects/{id}", "offline_response": "optimistic"],
        [
            "collection": "/nested/projects/{project}/tasks", "item": "/nested/projects/{project}/tasks/{id}",
            "offline_response": "optimistic",
        ],
    ]

    /// One API, and what differs in its bodies.
    private struct API: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let resource: JSONValue
        let collection: String
        /// The item with the id 1, and the prefix of the path of others.
        let item: @Sendable (String) -> String
        let member: String
        var envelope = ""
        var items = ""
        var version = "rev"
    }

    private static let apis: [API] = [
        API(
            testDescription: "suffix",
            resource: ["collection": "/rails/issues.json", "item": "/rails/issues/{id}.json", "items": "/issues", "envelope": "/issue"],
            collection: "/rails/issues.json", item: { "/rails/issues/\($0).json" }, member: "subject", envelope: "issue", items: "issues"),
        API(
            testDescription: "slash", resource: ["collection": "/django/notes/", "item": "/django/notes/{id}/", "items": "/results"],
            collection: "/django/notes/", item: { "/django/notes/\($0)/" }, member: "title", items: "results"),
        API(
            testDescription: "key",
            resource: ["collection": "/odata/Products", "item": "/odata/Products({id})", "items": "/value", "id": "/ID"],
            collection: "/odata/Products", item: { "/odata/Products(\($0))" }, member: "Name", items: "value"),
    ]

    /// Everything that a client does with its list: change, delete, create, change what was created.
    @Test(arguments: apis) private func itemsAreWrittenAndReadAway(api: API) async throws {
        var resource = api.resource
        resource = resource.merging(["offline_response": "optimistic"])
        try await ShapedWorld.with([resource]) { world in
            func object(_ body: JSONValue?) -> JSONValue? { api.envelope.isEmpty ? body : body?[api.envelope] }
            func list(_ reply: Curl) -> [String] { reply.json?[api.items]?.array?.compactMap { $0[api.member]?.string } ?? [] }
            func body(_ text: String) -> JSONValue {
                let object: JSONValue = .object(JSONObject([(api.member, .string(text))]))
                return api.envelope.isEmpty ? object : .object(JSONObject([(api.envelope, object)]))
            }
            let before = try await list(world.get(api.collection))
            #expect(!before.isEmpty)
            try await #expect(world.get(api.item("1")).status == 200)
            try await world.turn("offline")

            let changed = try await world.send("PATCH", api.item("1"), body("changed"))
            #expect(object(changed.json)?[api.member] == "changed" || changed.status == 204, "\(changed.status) \(changed.text)")
            try await #expect(object(world.get(api.item("1")).json)?[api.member] == "changed")
            let created = try await world.send("POST", api.collection, body("new"))
            #expect(created.status == 201, "\(created.text)")
            let place = try #require(created["location"])
            let local = try #require(created["rockpool-local-id"])
            #expect(place == api.item(local))
            try await #expect(object(world.get(place).json)?[api.member] == "new")
            try await world.send("PATCH", place, body("newer"))
            try await #expect(list(world.get(api.collection)) == ["changed"] + before.dropFirst() + ["newer"])

            try await world.comeBack()
            try await #expect(object(world.direct(api.item("1")).json)?[api.member] == "changed")
            let after = try await list(world.get(api.collection))
            try await #expect(list(world.direct(api.collection)) == after && after.last == "newer")
            let moved = try await world.get(place)
            #expect(moved.status == 200 && object(moved.json)?[api.member] == "newer", "\(moved.status) \(moved.text)")
            let real = try #require(moved["content-location"])
            #expect(
                URL(string: real)?.path(percentEncoded: true) == api.item("\(after.count)") || real.hasSuffix(api.item("\(after.count)")),
                "\(real)")

            try await world.turn("offline")
            try await #expect(world.send("DELETE", api.item("1")).status == 204)
            try await #expect(world.get(api.item("1")).status == 404)
            try await #expect(list(world.get(api.collection)) == Array(after.dropFirst()))
            try await world.comeBack()
            try await #expect(world.direct(api.item("1")).status == 404)
        }
    }

    // MARK: parents

    @Test func aChildOfAParentThatIsCreatedAwayWaitsForIt() async throws {
        try await ShapedWorld.with(Self.projects) { world in
            try await #expect(world.get("/nested/projects").status == 200)
            try await world.turn("offline")
            let parent = try await world.send("POST", "/nested/projects", ["name": "new"])
            let project = try #require(parent["location"])
            try await #expect(world.get(project + "/tasks").json == [])
            let child = try await world.send("POST", project + "/tasks", ["title": "first"])
            #expect(child.status == 201, "\(child.text)")
            let task = try #require(child["location"])
            #expect(task.hasPrefix(project + "/tasks/"))
            try await world.send("PATCH", task, ["title": "changed"])
            try await #expect(world.get(task).json?["title"] == "changed")
            try await #expect(world.get(project + "/tasks").json?.array?.map { $0["title"] } == ["changed"])

            try await world.comeBack()
            try await #expect(
                world.arrived() == ["POST /nested/projects", "POST /nested/projects/3/tasks", "PATCH /nested/projects/3/tasks/1"])
            try await #expect(world.direct("/nested/projects/3/tasks").json?.array?.map { $0["title"] } == ["changed"])
            for path in [project + "/tasks", "/nested/projects/3/tasks"] {
                try await #expect(world.get(path).json?.array?.map { $0["title"] } == ["changed"], "\(path)")
            }
            try await #expect(world.get(task).json?["title"] == "changed")
        }
    }

    @Test func theDeletionOfAParentRemovesWhatIsBelowIt() async throws {
        try await ShapedWorld.with(Self.projects) { world in
            for path in [
                "/nested/projects", "/nested/projects/1", "/nested/projects/1/tasks", "/nested/projects/1/tasks/1",
                "/nested/projects/2/tasks",
            ] {
                try await #expect(world.get(path).status == 200)
            }
            try await world.turn("offline")
            try await world.send("PATCH", "/nested/projects/1/tasks/1", ["title": "late"])
            try await #expect(world.send("DELETE", "/nested/projects/1").status == 204)
            for path in ["/nested/projects/1", "/nested/projects/1/tasks", "/nested/projects/1/tasks/1"] {
                let gone = try await world.get(path)
                #expect(gone.status == 404 && gone["rockpool-state"] == "pending-delete", "\(path): \(gone.status)")
            }
            try await #expect(world.send("POST", "/nested/projects/1/tasks", ["title": "x"]).status == 404)
            try await #expect(world.get("/nested/projects/2/tasks").json?.array?.count == 1)

            try await world.comeBack()
            try await #expect(
                world.arrived() == ["PATCH /nested/projects/1/tasks/1", "DELETE /nested/projects/1"], "in the order of the client")
            try await world.turn("offline")
            for path in ["/nested/projects/1/tasks", "/nested/projects/1/tasks/1"] {
                try await #expect(world.get(path).status == 404, "\(path) after the delivery")
            }
        }
    }

    @Test func anItemDeletedOnlineIsGoneAwayWithWhatIsBelowIt() async throws {
        try await ShapedWorld.with(Self.projects) { world in
            for path in ["/nested/projects/1", "/nested/projects/1/tasks", "/nested/projects/1/tasks/1"] {
                try await #expect(world.get(path).status == 200)
            }
            try await #expect(world.send("DELETE", "/nested/projects/1").status == 204)
            try await world.turn("offline")
            for path in ["/nested/projects/1", "/nested/projects/1/tasks", "/nested/projects/1/tasks/1"] {
                try await #expect(world.get(path).status == 404, "\(path)")
            }
        }
    }

    // MARK: rows and single items

    @Test func rowsAreWrittenByTheirQuery() async throws {
        let rows: JSONValue = [
            ["collection": "/rest/products", "item": "/rest/products?id=eq.{id}", "offline_response": "optimistic"]
        ]
        try await ShapedWorld.with(rows) { world in
            let paths = ["/rest/products", "/rest/products?id=eq.1", "/rest/products?select=*&state=eq.open"]
            for path in paths { try await #expect(world.get(path).status == 200) }
            try await world.turn("offline")
            let patch = try await world.send("PATCH", "/rest/products?id=eq.1", ["state": "done"])
            #expect([200, 204].contains(patch.status), "\(patch.text)")
            try await #expect(world.get(paths[0]).json?.array?.compactMap { $0["state"]?.string } == ["done", "done"])
            try await #expect(world.get(paths[1]).json?.array?.first?["state"] == "done")
            try await #expect(world.get(paths[2]).json == [])
            let created = try await world.send("POST", "/rest/products", ["name": "c", "state": "open"])
            let place = try #require(created["location"])
            #expect(created.status == 201 && place.hasPrefix("/rest/products?id=eq.8"), "\(place)")
            try await #expect(world.get(place).json?.array?.compactMap { $0["name"]?.string } == ["c"])
            try await world.send("PATCH", place, ["name": "d"])
            try await #expect(world.send("DELETE", "/rest/products?id=eq.2").status == 204)
            try await #expect(world.get(paths[0]).json?.array?.compactMap { $0["name"]?.string } == ["a", "d"])

            try await world.comeBack()
            let arrived = try await world.arrived()
            #expect(
                arrived.sorted() == [
                    "DELETE /rest/products?id=eq.2", "PATCH /rest/products?id=eq.1", "PATCH /rest/products?id=eq.3", "POST /rest/products",
                ])
            try await #expect(world.direct("/rest/products").json?.array?.compactMap { $0["name"]?.string } == ["a", "d"])
            for path in paths { try await #expect(world.get(path).json == world.direct(path).json, "\(path)") }
        }
    }

    @Test func aSingleItemIsChangedAway() async throws {
        try await ShapedWorld.with([["item": "/me", "offline_response": "optimistic"]]) { world in
            try await #expect(world.get("/me").json?["theme"] == "dark")
            try await world.turn("offline")
            let patch = try await world.send("PATCH", "/me", ["theme": "light"])
            #expect(patch.status == 200 && patch.json?["name"] == "Ada", "\(patch.text)")
            try await #expect(world.get("/me").json?["theme"] == "light")
            try await world.comeBack()
            try await #expect(world.direct("/me").json == ["id": 1, "name": "Ada", "theme": "light"])
            try await #expect(world.get("/me").json?["theme"] == "light")
        }
    }
}
