// The entity and lane of a write, before and after an id is mapped (docs/outbox.md#lanes, docs/outbox.md#local-ids).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct PlacementTests {
    static let table = RouteTable(
        {
            var upstream = Upstream(name: "api", origin: origin)
            upstream.resources = [
                Resource(collection: "/lists", item: "/lists/{id}"), Resource(collection: "/lists/{list}/items"),
                Resource(collection: "/u/{user}/notes", item: "/notes/{user}/{id}"), Resource(collection: "/all", item: "/one/{id}"),
                Resource(collection: "/by/{owner}/things", item: "/things/{id}"),
            ]
            var configuration = Configuration()
            configuration.upstreams = [upstream]
            return configuration
        }())

    private func place(
        _ method: HTTPRequest.Method, _ target: String, order: RouteOrder = .entity, principal: String? = nil, sender: String? = nil,
        alias: (String, String) -> LocalID? = { _, _ in nil }
    ) -> Placement {
        let entity = Self.table.plan(for: RequestHead(method: method, origin: origin, target: spelled(target))).entity
        return Placement(
            entity, method: method, upstream: "api", order: order, principal: principal, path: String(target.prefix { $0 != "?" }),
            sender: sender, newItem: .local(secondID), alias: alias)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var method: HTTPRequest.Method
        var target: String
        var entity: String?
        var collection: String?
        var id: String?
        var lane: String
        var testDescription: String { "\(method) \(target)" }
    }

    /// `β` is the id given to a create, `α` that of another item.
    static let cases = [
        Case(method: .put, target: "/lists/7/?x=1", entity: "/lists/7", collection: "/lists", id: "7", lane: "/lists/7"),
        Case(method: .post, target: "/lists", entity: "/lists/β", collection: "/lists", id: "β", lane: "/lists/β"),
        Case(method: .post, target: "/lists/7/publish", entity: "/lists/7", collection: "/lists", id: "7", lane: "/lists/7"),
        Case(
            method: .post, target: "/lists/7/items", entity: "/lists/7/items/β", collection: "/lists/7/items", id: "β",
            lane: "/lists/7/items/β"),
        Case(
            method: .patch, target: "/lists/α/items/3", entity: "/lists/α/items/3", collection: "/lists/α/items", id: "3",
            lane: "/lists/α/items/3"),
        Case(method: .delete, target: "/lists", entity: "/lists", collection: "/lists", id: nil, lane: "/lists"),
        Case(method: .put, target: "/notes/ann/3", entity: "/u/ann/notes/3", collection: "/u/ann/notes", id: "3", lane: "/u/ann/notes/3"),
        Case(method: .put, target: "/one/3", entity: "/all/3", collection: "/all", id: "3", lane: "/all/3"),
        // The item's path does not tell its list: what all such lists share is the collection.
        Case(method: .put, target: "/things/3", entity: "/things/3", collection: "/things", id: "3", lane: "/things/3"),
        Case(method: .put, target: "/else/3", entity: "/else/3", collection: nil, id: nil, lane: "/else/3"),
        // One path is one lane, whatever the method.
        Case(method: .post, target: "/else/3", entity: "/else/3", collection: nil, id: nil, lane: "/else/3"),
    ]

    @Test(arguments: cases)
    func everyWriteHasItsPlace(_ write: Case) {
        let place = place(write.method, write.target)
        #expect(place.entity == write.entity.map(spelled) && place.collection == write.collection.map(spelled))
        #expect(place.entityID == write.id.map(spelled) && place.lane == "api " + spelled(write.lane))
        #expect(place.newItem?.local == (write.id == "β" ? secondID : nil))
    }

    /// A create of an item with another path is the same entity, and in the same lane, as later writes to the item.
    @Test(arguments: [("/u/ann/notes", "/notes/ann/β"), ("/all", "/one/β"), ("/lists", "/lists/β")])
    func aCreateIsTheEntityItsItemWillBe(collection: String, item: String) {
        let (create, later) = (place(.post, collection), place(.patch, item))
        #expect(create.entity == later.entity && create.lane == later.lane && create.collection == later.collection)
        #expect(create.entityID == later.entityID)
    }

    /// A create whose key its client has chosen is the entity that the key names, also where that was created here before.
    @Test func aCreateWithAChosenKeyIsTheEntityOfThatKey() {
        func create(alias: (String, String) -> LocalID? = { _, _ in nil }) -> Placement {
            let entity = Self.table.plan(for: RequestHead(method: .post, origin: origin, target: "/lists")).entity
            return Placement(
                entity, method: .post, upstream: "api", order: .entity, principal: nil, newItem: .chosen("k1"), alias: alias)
        }
        let later = place(.patch, "/lists/k1")
        #expect(create().entity == later.entity && create().lane == later.lane && create().entityID == later.entityID)
        #expect(create().newItem == .chosen("k1"))
        func alias(_ collection: String, _ id: String) -> LocalID? { collection == "/lists" && id == "k1" ? firstID : nil }
        #expect(create(alias: alias).entity == place(.patch, "/lists/k1", alias: alias).entity)
    }

    /// Both names of a mapped item are one entity, also for items below it.
    @Test(arguments: [("/lists/7", "/lists/α"), ("/lists/7/items/3", "/lists/α/items/3"), ("/lists/7/items", "/lists/α/items")])
    func bothNamesAreOne(server: String, local: String) {
        func alias(_ collection: String, _ id: String) -> LocalID? { collection == "/lists" && id == "7" ? firstID : nil }
        let method = HTTPRequest.Method.put
        #expect(place(method, server, alias: alias) == place(method, local, alias: alias))
        #expect(place(method, server, alias: alias).entity == spelled(local))
    }

    @Test func whatIsMappedInOneCollectionIsNotInAnother() {
        func alias(_ collection: String, _ id: String) -> LocalID? { collection == "/lists" && id == "7" ? firstID : nil }
        #expect(place(.put, "/one/7", alias: alias).entity == "/all/7")
        #expect(place(.put, "/lists/3/items/7", alias: alias).entity == "/lists/3/items/7")
    }

    @Test func orderGlobalIsOneLane() {
        #expect(Set(["/lists", "/lists/7", "/else"].map { place(.post, $0, order: .upstream).lane }) == ["api"])
    }

    @Test(arguments: [HTTPRequest.Method.post, .put, .patch, .delete], [String?.none, "ann", "bob"])
    func undeclaredPathIsOneLaneForEveryMethodAndPrincipal(method: HTTPRequest.Method, principal: String?) {
        #expect(place(method, "/else/1/?x", principal: principal).lane == "api /else/1")
    }

    /// Declared and undeclared paths alike (RFC 3986 §6.2.2).
    @Test(arguments: [
        ("/else/a~b", "/else/a%7Eb"), ("/else/a~b", "/else/a%7eb"), ("/else/AB", "/else/%41B"), ("/else/%C3%A9", "/else/%c3%a9"),
        ("/else/a%2Fb", "/else/a%2fb"), ("/lists/a-7", "/lists/a%2D7"), ("/lists", "/%6Cists"),
    ])
    func equivalentSpellingsAreOnePlace(canonical: String, spelled: String) {
        for method in [HTTPRequest.Method.post, .put, .patch, .delete] { #expect(place(method, canonical) == place(method, spelled)) }
    }

    @Test(arguments: [("/else/a%2Fb", "/else/a/b"), ("/else/a%3Ab", "/else/a:b"), ("/else/A", "/else/a"), ("/else/%2541", "/else/%41")])
    func otherPathsStayApart(one: String, other: String) { #expect(place(.put, one).lane != place(.put, other).lane) }

    @Test func aRouteSaysWhatKeepsItsOrder() {
        let send = "/rooms/1/send/m.room.message/"
        #expect(
            place(.put, send + "a", order: .sender, principal: "ann").lane == place(.put, send + "b", order: .sender, principal: "ann").lane
        )
        #expect(place(.put, send + "a", order: .sender, principal: "ann").lane == "api @ ann")
        #expect(place(.put, send + "a", order: .sender, sender: "@10.0.0.1").lane == "api @ @10.0.0.1")
        #expect(place(.put, send + "a", order: .sender, principal: "ann").entity == send + "a")
        #expect(place(.post, "/lists?x=1", order: .path).lane == "api /lists" && place(.put, "/one/3", order: .path).lane == "api /one/3")
        #expect(place(.put, "/one/3", order: .upstream).lane == "api" && RouteOrder(LaneOrder.global) == .upstream)
    }

    @Test func operationsOfOlderVersionsGetTheCurrentLane() {
        func renewed(_ lane: String, _ entity: String?, isPost: Bool = true, _ principal: String? = nil) -> String? {
            Lane.renewed(lane, entity: entity, isPost: isPost, upstream: "api", principal: principal)?.lane
        }
        #expect(renewed("api /cart ann", "/cart", "ann") == "api /cart" && renewed("api /cart *", "/cart") == "api /cart")
        #expect(renewed("api /a%7eb", "/a%7eb", isPost: false) == "api /a~b" && renewed("api /a%7eb ann", "/a%7eb", "ann") == "api /a~b")
        #expect(renewed("api /cart", "/cart") == nil && renewed("api /cart bob", "/cart", "ann") == nil && renewed("api", "/cart") == nil)
        #expect(renewed("api * ann", nil, "ann") == nil)
    }

    @Test func nothingAtAllIsOneLaneOfItsIdentity() {
        let nowhere = Placement(
            nil, method: .post, upstream: "api", order: .entity, principal: "ann", newItem: .local(firstID), alias: { _, _ in nil })
        let other = Placement(
            nil, method: .put, upstream: "api", order: .entity, principal: "ann", newItem: .local(secondID), alias: { _, _ in nil })
        #expect(nowhere == other)
        #expect(nowhere.lane == "api * ann" && nowhere.entity == nil)
    }
}
