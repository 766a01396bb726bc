// A resource of each profile, described by its collection alone, away and back (docs/reference/configuration.md#profiles).
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct ProfileTests {
    private struct API: Sendable, CustomTestStringConvertible {
        let profile: String
        let collection: String
        let item: @Sendable (String) -> String
        /// The body of a create, and of a change.
        let create, change: JSONValue
        /// Where the changed member is in an item, and in an element of a list.
        let member, listed: String
        let items: String
        let type: String
        var options: JSONValue = [:]
        var method = "PATCH"
        var testDescription: String { profile }
    }

    private static let apis: [API] = [
        API(
            profile: "jsonapi", collection: "/jsonapi/articles", item: { "/jsonapi/articles/\($0)" },
            create: ["data": ["type": "articles", "attributes": ["title": "new", "body": "n"]]],
            change: ["data": ["type": "articles", "id": "1", "attributes": ["title": "changed"]]], member: "/data/attributes/title",
            listed: "/attributes/title", items: "/data", type: "application/vnd.api+json"),
        API(
            profile: "hal", collection: "/hal/orders", item: { "/hal/orders/\($0)" }, create: ["total": "new"],
            change: ["total": "changed"],
            member: "/total", listed: "/total", items: "/_embedded/orders", type: "application/hal+json"),
        API(
            profile: "fhir", collection: "/fhir/Patient", item: { "/fhir/Patient/\($0)" },
            create: ["resourceType": "Patient", "gender": "new"], change: ["resourceType": "Patient", "id": "1", "gender": "changed"],
            member: "/gender", listed: "/resource/gender", items: "/entry", type: "application/fhir+json", method: "PUT"),
        API(
            profile: "odata", collection: "/odata/Products", item: { "/odata/Products(\($0))" }, create: ["Name": "new"],
            change: ["Name": "changed"], member: "/Name", listed: "/Name", items: "/value", type: "application/json"),
        API(
            profile: "postgrest", collection: "/rest/products", item: { "/rest/products?id=eq.\($0)" }, create: ["name": "new"],
            change: ["name": "changed"], member: "/0/name", listed: "/name", items: "", type: "application/json"),
    ]

    @Test(arguments: apis) private func theCollectionIsEnough(api: API) async throws {
        var resource: JSONValue = [
            "collection": .string(api.collection), "profile": .string(api.profile), "offline_response": "optimistic",
        ]
        resource = resource.merging(api.options)
        try await ShapedWorld.with([resource]) { world in
            let fields = ["Content-Type: \(api.type)"]
            func value(_ pointer: String, _ body: JSONValue?) -> String? { body.flatMap { JSONPointer(pointer)?.get(in: $0)?.string } }
            func names(_ body: JSONValue?) -> [String?] {
                body.flatMap { JSONPointer(api.items)?.get(in: $0)?.array }?.map { value(api.listed, $0) } ?? []
            }
            func essence(_ reply: Curl) -> String? { reply["content-type"].map { String($0.prefix { $0 != ";" }) } }
            let before = try await names(world.get(api.collection).json)
            try await #expect(world.get(api.item("1")).status == 200)
            try await world.turn("offline")

            let changed = try await world.send(api.method, api.item("1"), api.change, fields)
            #expect(
                changed.status == 200 && value(api.member, changed.json) == "changed" && essence(changed) == api.type, "\(changed.text)")
            let created = try await world.send("POST", api.collection, api.create, fields)
            #expect(created.status == 201 && essence(created) == api.type, "\(created.status) \(created.text)")
            let place = try #require(created["location"])
            #expect(try place == api.item(#require(created["rockpool-local-id"])))
            let item = try await world.get(place)
            #expect(item.status == 200 && value(api.member, item.json) == "new" && essence(item) == api.type, "\(item.text)")
            let list = try await world.get(api.collection)
            #expect(names(list.json) == ["changed"] + before.dropFirst() + ["new"] && list["rockpool-dirty"] == nil, "\(list.text)")
            try await #expect(value(api.member, world.get(api.item("1")).json) == "changed")

            try await world.comeBack()
            let last = before.count + 1
            let own = try await world.direct(api.collection).json
            #expect(names(own) == ["changed"] + before.dropFirst() + ["new"], "\(String(describing: own))")
            try await #expect(world.get(api.collection).json == own)
            try await #expect(world.get(place).json == world.direct(api.item("\(last)")).json)
            try await #expect(world.arrived().sorted() == ["\(api.method) \(api.item("1"))", "POST \(api.collection)"].sorted())

            try await world.turn("offline")
            let deleted = try await world.send("DELETE", api.item("1"))
            #expect((200...204).contains(deleted.status))
            let gone = try await world.get(api.item("1"))
            #expect(api.profile == "postgrest" ? gone.json == [] : gone.status == 404, "\(gone.status) \(gone.text)")
            try await #expect(names(world.get(api.collection).json) == Array(before.dropFirst()) + ["new"])
            try await world.comeBack()
            try await #expect(names(world.direct(api.collection).json) == Array(before.dropFirst()) + ["new"])
        }
    }

    /// `meta.versionId` names the local state, and what a client sends back is the server's version by then.
    @Test func theVersionOfAResourceFollows() async throws {
        try await ShapedWorld.with([["collection": "/fhir/Patient", "profile": "fhir", "offline_response": "optimistic"]]) { world in
            let fields = ["Content-Type: application/fhir+json"]
            var patient = try #require(try await world.get("/fhir/Patient/1").json)
            #expect(patient["meta"]?["versionId"] == "1")
            try await world.turn("offline")
            for (n, gender) in ["other", "unknown"].enumerated() {
                patient = patient.merging(["gender": .string(gender)])
                let reply = try await world.send("PUT", "/fhir/Patient/1", patient, fields)
                patient = try #require(reply.json)
                let version = patient["meta"]?["versionId"]?.string ?? ""
                #expect(version.hasPrefix("loc-\(n + 1)"), "\(reply.text)")
                try await #expect(world.get("/fhir/Patient/1").json?["meta"]?["versionId"]?.string == version)
            }
            try await world.comeBack()
            let sent = try await world.direct("/log").json?.array?.map { $0["body"]?["meta"]?["versionId"]?.string }
            #expect(sent == ["1", "2"])
            try await #expect(world.direct("/fhir/Patient/1").json?["gender"] == "unknown")
        }
    }

    /// A change of another client to another attribute stays.
    @Test func attributesOfAnotherClientStay() async throws {
        try await ShapedWorld.with([["collection": "/jsonapi/articles", "profile": "jsonapi", "offline_response": "optimistic"]]) { world in
            let fields = ["Content-Type: application/vnd.api+json"]
            func article(_ attributes: JSONValue) -> JSONValue { ["data": ["type": "articles", "id": "1", "attributes": attributes]] }
            try await #expect(world.get("/jsonapi/articles/1").status == 200)
            try await world.turn("offline")
            try await world.send("PATCH", "/jsonapi/articles/1", article(["title": "mine"]), fields)
            let other = try await Curl.send(
                "PATCH", "http://127.0.0.1:\(world.port)/jsonapi/articles/1", fields: fields,
                body: String(decoding: article(["body": "theirs"]).serialized(), as: UTF8.self))
            #expect(other.status == 200)
            try await world.comeBack()
            try await #expect(
                world.direct("/jsonapi/articles/1").json?["data"]?["attributes"] == ["title": "mine", "body": "theirs"])
        }
    }
}
