// Items whose keys their clients choose: a slug, or an id of the client's own (docs/outbox.md#chosen-keys).
import Foundation
import RockpoolCore
import RockpoolTesting
import Synchronization
import Testing

@Suite(.serialized) struct ChosenKeyTests {
    /// An API of pages, each under the `slug` that its create names, with notes below it; or, where `keeps` is false, under a number of its own.
    private final class Pages: Sendable {
        private struct State {
            var pages: [String: JSONObject] = ["home": JSONObject([("slug", "home"), ("t", "Home")])]
            var notes: [String] = []
            var made = 0
        }

        private let state = Mutex(State())
        let keeps: Bool

        init(keeps: Bool = true) { self.keeps = keeps }

        /// The titles by slug.
        var titles: [String: String] { state.withLock { $0.pages.mapValues { $0["t"]?.string ?? "" } } }

        /// The pages to which notes were added, in order.
        var notes: [String] { state.withLock { $0.notes } }

        func play(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
            let body = (try? JSONValue.parse(Array(asked.body.utf8)))?.object ?? JSONObject()
            let words = asked.path.split(separator: "/").map { String($0) }
            return state.withLock { state in
                guard words.first == "pages" else { return .text("{}", status: 404, "Content-Type: application/json") }
                if words.count == 3, asked.method == "POST" {
                    guard state.pages[words[1]] != nil else { return .text("{}", status: 404, "Content-Type: application/json") }
                    state.notes.append(words[1])
                    return said(body, status: 201)
                }
                guard words.count == 2 else {
                    if asked.method == "POST" { return create(body, in: &state) }
                    let list = state.pages.sorted { $0.key < $1.key }.map { JSONValue.object($0.value) }
                    return .text(String(decoding: JSONValue.array(list).serialized(), as: UTF8.self), "Content-Type: application/json")
                }
                guard var page = state.pages[words[1]] else { return .text("{}", status: 404, "Content-Type: application/json") }
                switch asked.method {
                case "PATCH":
                    for (name, value) in body { page[name] = value }
                    state.pages[words[1]] = page
                case "DELETE":
                    state.pages[words[1]] = nil
                    return PlayedSite.Said(status: 204)
                default: break
                }
                return said(page)
            }
        }

        private func create(_ body: JSONObject, in state: inout State) -> PlayedSite.Said {
            var page = body
            state.made += 1
            let slug = keeps ? body["slug"]?.string ?? "page-\(state.made)" : "page-\(state.made)"
            guard state.pages[slug] == nil else { return .text("{}", status: 409, "Content-Type: application/json") }
            page["slug"] = .string(slug)
            state.pages[slug] = page
            return said(page, status: 201)
        }

        private func said(_ object: JSONObject, status: Int = 200) -> PlayedSite.Said {
            .text(
                String(decoding: JSONValue.object(object).serialized(), as: UTF8.self), status: status, "Content-Type: application/json")
        }
    }

    private static let upstream: JSONValue = [
        "policy": "offline-first",
        "resources": [
            ["collection": "/pages", "item": "/pages/{id}", "id": "/slug", "offline_response": "optimistic"],
            ["collection": "/pages/{page}/notes", "item": "/pages/{page}/notes/{id}", "offline_response": "optimistic"],
        ],
    ]

    private static let json = ["Content-Type: application/json"]

    /// Runs `body` away, after the API has answered one create with a key.
    private func away(_ pages: Pages, _ body: (PlayedWorld) async throws -> Void) async throws {
        try await PlayedWorld.with(upstream: Self.upstream, { pages.play($0) }) { world in
            try await #expect(world.get("/pages").status == 200)
            let seen = try await world.send("POST", "/pages", fields: Self.json, body: #"{"slug":"seen","t":"Seen"}"#)
            #expect(seen.status == 201)
            try await #expect(world.get("/pages").status == 200)
            try await world.turn("offline")
            try await body(world)
        }
    }

    private func back(_ world: PlayedWorld) async throws {
        try await world.turn("online")
        try await eventually("an empty outbox") {
            try await world.server.get("/v1/operations").json?["items"]?.array?.isEmpty == true
        }
    }

    @Test func aNewItemIsReadEditedAndDeletedUnderItsKey() async throws {
        let pages = Pages()
        try await away(pages) { world in
            let made = try await world.send("POST", "/pages", fields: Self.json, body: #"{"slug":"k1","t":"One"}"#)
            #expect(made.status == 201 && made.json?["slug"] == "k1" && made["location"]?.hasSuffix("/pages/k1") == true, "\(made.text)")
            #expect(made["rockpool-local-id"] == nil)
            let edited = try await world.send("PATCH", "/pages/k1", fields: Self.json, body: #"{"t":"Two"}"#)
            #expect(edited.status == 200 && edited.json?["t"] == "Two", "\(edited.text)")
            let item = try await world.get("/pages/k1")
            #expect(item.status == 200 && item.json == ["slug": "k1", "t": "Two"], "\(item.text)")
            let list = try await world.get("/pages")
            #expect(list.json?.array?.compactMap { $0["slug"]?.string }.sorted() == ["home", "k1", "seen"], "\(list.text)")
            _ = try await world.send("POST", "/pages/k1/notes", fields: Self.json, body: #"{"id":5}"#)

            _ = try await world.send("POST", "/pages", fields: Self.json, body: #"{"slug":"gone","t":"-"}"#)
            try await #expect(world.send("DELETE", "/pages/gone").status == 204)
            try await #expect(world.get("/pages/gone").status == 404)
            try await back(world)
            #expect(pages.titles == ["home": "Home", "seen": "Seen", "k1": "Two"] && pages.notes == ["k1"], "\(pages.titles)")
            try await #expect(world.get("/pages/k1").json?["t"] == "Two")
        }
    }

    /// Create, delete and create again of one key are one entity, also where the server has had it all along.
    @Test(arguments: ["new", "home"]) func aKeyThatIsUsedAgainNamesTheLastItem(key: String) async throws {
        let pages = Pages()
        try await away(pages) { world in
            if key == "new" { _ = try await world.send("POST", "/pages", fields: Self.json, body: #"{"slug":"new","t":"1"}"#) }
            try await #expect(world.send("DELETE", "/pages/\(key)").status == 204)
            let again = try await world.send("POST", "/pages", fields: Self.json, body: #"{"slug":"\#(key)","t":"2"}"#)
            #expect(again.status == 201, "\(again.text)")
            try await #expect(world.get("/pages/\(key)").json?["t"] == "2")
            let note = try await world.send("POST", "/pages/\(key)/notes", fields: Self.json, body: #"{"id":5}"#)
            #expect(note.status == 201, "\(note.text)")
            try await back(world)
            #expect(pages.titles[key] == "2" && pages.notes == [key], "\(pages.titles) \(pages.notes)")
        }
    }

    /// The API refuses the key: what was written to it does not reach the item of somebody else.
    @Test func whatBuildsOnARefusedCreateIsNotSent() async throws {
        let pages = Pages()
        try await away(pages) { world in
            _ = try await world.send("POST", "/pages", fields: Self.json, body: #"{"slug":"taken","t":"mine"}"#)
            _ = try await world.send("PATCH", "/pages/taken", fields: Self.json, body: #"{"t":"also mine"}"#)
            _ = pages.play(.init(method: "POST", path: "/pages", head: MessageHead(""), body: #"{"slug":"taken","t":"theirs"}"#))
            try await world.turn("online")
            try await eventually("the create is refused") {
                try await world.server.get("/v1/operations").json?["items"]?.array?.contains {
                    $0["method"] == "POST" && ["dead", "conflicted"].contains($0["state"]?.string ?? "")
                } == true
            }
            try await #expect(world.get("/pages/home").status == 200)
            #expect(pages.titles["taken"] == "theirs", "\(pages.titles)")
        }
    }

    /// An API that gives keys of its own: the new item has a local id, and no write to the key that the client has in mind overtakes its create.
    @Test func aKeyThatIsNotKeptIsNoId() async throws {
        let pages = Pages(keeps: false)
        try await away(pages) { world in
            let made = try await world.send("POST", "/pages", fields: Self.json, body: #"{"slug":"k1","t":"One"}"#)
            #expect(made.json?["slug"]?.string?.hasPrefix("loc_") == true && made["rockpool-local-id"] != nil, "\(made.text)")
            _ = try await world.send("DELETE", "/pages/k1")
            try await back(world)
            let order = world.site.asked.filter { $0.method == "POST" || $0.method == "DELETE" }.map(\.method)
            #expect(order == ["POST", "POST", "DELETE"], "\(order)")
        }
    }
}
