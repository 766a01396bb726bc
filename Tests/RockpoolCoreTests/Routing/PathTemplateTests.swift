// docs/reference/configuration.md#shapes-of-paths: the paths by which APIs name collections and items.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct PathTemplateTests {
    private static let origin = OriginAddress(scheme: .https, host: "api.example.com")

    private static let resources = [
        Resource(collection: "/users", item: "/users/{id}"), Resource(collection: "", item: "/users/me"),
        Resource(collection: "", item: "/projects/{project}/settings/"),
        Resource(collection: "/projects", item: "/projects/{id}"),
        Resource(collection: "/projects/{project}/tasks", item: "/projects/{project}/tasks/{id}"),
        Resource(collection: "/notes/{id}/comments", item: "/notes/{id}/comments/{comment}"),
        Resource(collection: "/issues.json", item: "/issues/{id}.json"),
        Resource(collection: "/issues/{issue}/relations.json", item: "/issues/{issue}/relations/{id}.json"),
        Resource(collection: "/django/", item: "/django/{id}/"),
        Resource(collection: "/Products", item: "/Products({id})"), Resource(collection: "/People", item: "/People('{id}')"),
        Resource(collection: "/Products({product})/Parts", item: "/Products({product})/Parts({id})"),
        Resource(collection: "/lines", item: "/lines/{order}/{line}"),
        Resource(collection: "/Lines", item: "/Lines(Order={Order},Line={Line})"),
        Resource(collection: "/rows", item: "/rows?id=eq.{id}"), Resource(collection: "/files", item: "/files/v{id}-final"),
    ]

    private static let table: RouteTable = {
        var configuration = Configuration()
        configuration.upstreams = [Upstream(name: "api", origin: origin, resources: resources)]
        return RouteTable(configuration)
    }()

    private func entity(_ method: String, _ target: String) throws -> EntityMatch? {
        let method = try #require(HTTPRequest.Method(method))
        return Self.table.plan(for: RequestHead(method: method, origin: Self.origin, target: target)).entity
    }

    /// A path, with the id, the target of the item, and the names of the collection.
    private struct Item: Sendable, CustomTestStringConvertible {
        let asked, id, target, name: String
        var list: String?
        var action: String?
        var testDescription: String { asked }

        init(_ asked: String, id: String, _ target: String? = nil, in name: String, list: String? = "=", action: String? = nil) {
            (self.asked, self.id, self.target, self.name, self.action) = (asked, id, target ?? asked, name, action)
            self.list = list == "=" ? name : list
        }
    }

    private static let items: [Item] = [
        Item("/users/17", id: "17", in: "/users"), Item("/users/me", id: "", in: "/users/me", list: nil),
        Item("/projects/4/settings", id: "", "/projects/4/settings/", in: "/projects/4/settings", list: nil),
        Item("/projects/4/tasks/9?x=1", id: "9", "/projects/4/tasks/9", in: "/projects/4/tasks"),
        Item("/notes/4/comments/9", id: "9", in: "/notes/4/comments"),
        Item("/issues/7.json", id: "7", in: "/issues", list: "/issues.json"),
        Item("/issues/7/relations/3.json", id: "3", in: "/issues/7/relations", list: "/issues/7/relations.json"),
        Item("/django/7", id: "7", "/django/7/", in: "/django"), Item("/django/7/", id: "7", in: "/django"),
        Item("/Products(7)", id: "7", in: "/Products"), Item("/Products('a''b')", id: "a'b", in: "/Products"),
        Item("/People('x%20y')", id: "x y", in: "/People"), Item("/People(%27x%27)", id: "x", "/People(%27x%27)", in: "/People"),
        Item("/Products(7)/Parts(3)", id: "3", in: "/Products/7/Parts", list: "/Products(7)/Parts"),
        Item("/lines/4/2", id: "4,2", in: "/lines"), Item("/Lines(Order=4,Line='b')", id: "4,b", in: "/Lines"),
        Item("/files/v3-final", id: "3", in: "/files"),
    ]

    @Test(arguments: items) private func itemsAreKnownByTheirPaths(item: Item) throws {
        for method in ["GET", "PATCH"] {
            let found = try #require(try entity(method, item.asked))
            #expect(found.isItem && found.id == item.id && found.action == item.action)
            #expect((found.target, found.name, found.collection) == (item.target, item.name, item.list))
        }
    }

    @Test(
        arguments: [
            ("/users", "/users"), ("/issues.json?status=open", "/issues"), ("/issues/7/relations.json", "/issues/7/relations"),
            ("/Products(7)/Parts", "/Products/7/Parts"), ("/Products('a%2Fb')/Parts", "/Products/a%2Fb/Parts"), ("/django/", "/django"),
            ("/rows", "/rows"), ("/projects/4/tasks", "/projects/4/tasks"),
        ])
    func collectionsHaveNamesOfTheirItems(target: String, name: String) throws {
        let found = try #require(try entity("GET", target))
        #expect(!found.isItem && found.id == nil && found.name == name)
    }

    @Test(
        arguments: [
            ("/issues/7/close.json", "7", "close", "/issues/7.json"), ("/issues/7/close", "7", "close", "/issues/7.json"),
            ("/Products(7)/Discount", "7", "Discount", "/Products(7)"), ("/users/7/ban", "7", "ban", "/users/7"),
        ])
    func actionsAreBelowTheirItem(target: String, id: String, action: String, item: String) throws {
        let found = try #require(try entity("POST", target))
        #expect(found.isItem && found.id == id && found.action == action && found.target == item)
    }

    @Test(arguments: [
        "/issues/7", "/issues/.json", "/Products()", "/Products(7", "/Lines(Order=4)", "/Lines(Line=1,Order=2)", "/files/v-final",
        "/files/3",
        "/issues/7.xml", "/lines/4",
    ])
    func otherPathsAreNoItems(target: String) throws { #expect(try entity("GET", target) == nil) }

    // MARK: rows

    @Test(
        arguments: [
            ("/rows?id=eq.7", "7", "/rows?id=eq.7"), ("/rows?select=*&id=eq.7", "7", "/rows?id=eq.7"),
            ("/rows?id=eq.a%26b&select=id,name", "a&b", "/rows?id=eq.a%26b"), ("/rows?id=eq.a%20b", "a b", "/rows?id=eq.a%20b"),
        ])
    func aWriteIsOfTheRowThatItsQueryNames(target: String, id: String, path: String) throws {
        for method in ["PATCH", "PUT", "DELETE"] {
            let found = try #require(try entity(method, target))
            #expect(found.isItem && found.id == id && found.path == path && found.name == "/rows" && found.collection == "/rows")
        }
        let read = try #require(try entity("GET", target))
        #expect(!read.isItem && read.collection == "/rows", "a read lists rows")
    }

    /// Such a write changes whatever it selects.
    @Test(arguments: ["/rows", "/rows?id=gt.7", "/rows?id=eq.7&owner=eq.2", "/rows?id=eq.7&id=eq.8", "/rows?id=eq."])
    func otherQueriesNameNoRow(target: String) throws {
        let found = try #require(try entity("PATCH", target))
        #expect(!found.isItem && found.id == nil)
    }

    // MARK: created items

    @Test(
        arguments: [
            ("/issues.json", "/issues/loc.json"), ("/Products(7)/Parts", "/Products(7)/Parts(loc)"), ("/People", "/People('loc')"),
            ("/rows", "/rows?id=eq.loc"), ("/django/", "/django/loc/"), ("/projects/4/tasks", "/projects/4/tasks/loc"),
        ])
    func aNewItemHasTheFormOfItsCollection(collection: String, item: String) throws {
        let request = RequestHead(method: .post, origin: Self.origin, target: collection)
        let resource = Self.table.plan(for: request).entity?.resource
        #expect(ServerID(text: "loc").target(in: request, resource: resource) == item)
    }

    @Test(
        arguments: [
            ("/issues.json", "/issues/7.json", "7", "/issues/7.json"), ("/rows", "/rows?id=eq.7", "7", "/rows?id=eq.7"),
            ("/Products", "https://api.example.com/Products(7)", "7", "/Products(7)"),
            ("/People", "/People('o''b')", "o'b", "/People('o''b')"),
            ("/django/", "/django/7/", "7", "/django/7/"), ("/lines", "/lines/4/2", "4,2", "/lines/4/2"),
        ])
    func theAnswersLocationNamesTheItem(collection: String, location: String, id: String, target: String) throws {
        let request = RequestHead(method: .post, origin: Self.origin, target: collection)
        let answer = ResponseHead(status: 201, fields: [.location: location])
        let resource = Self.table.plan(for: request).entity?.resource
        let found = try #require(ServerID.inAnswer(answer, json: nil, to: request, resource: resource))
        #expect(found.id == ServerID(text: id) && found.url == Self.origin.url + target)
    }

    @Test(
        arguments: [
            ("/issues.json", ["id": 7], "7", true, "/issues/7.json"), ("/rows", [["id": 7]], "7", true, "/rows?id=eq.7"),
            ("/lines", ["order": 4, "line": "b"], "4,b", false, "/lines/4/b"),
            ("/People", ["id": "o'b"], "o'b", false, "/People('o%27%27b')"),
        ] as [(String, JSONValue, String, Bool, String)])
    func theAnswersBodyNamesTheItem(collection: String, body: JSONValue, id: String, isNumber: Bool, target: String) throws {
        let request = RequestHead(method: .post, origin: Self.origin, target: collection)
        let resource = Self.table.plan(for: request).entity?.resource
        let found = try #require(ServerID.inAnswer(ResponseHead(status: 201), json: body, to: request, resource: resource))
        #expect(found.id == ServerID(text: id, isNumber: isNumber) && found.url == Self.origin.url + target)
    }

    // MARK: parents

    /// The name of what is below an item begins with the item's, by its local id before and after that is mapped.
    @Test(arguments: [
        ("/projects", "/projects/7/tasks/3", "/projects/L/tasks"), ("/issues", "/issues/7/relations/3.json", "/issues/L/relations"),
        ("/Products", "/Products(7)/Parts(3)", "/Products/L/Parts"),
    ])
    func whatIsBelowAnItemIsNamedByIt(collection: String, target: String, name: String) throws {
        let id = LocalID.make(now: Timestamp(milliseconds: 1), random: (1, 2))
        let alias = { (place: String, text: String) in place == collection && text == "7" ? id : nil }
        for text in ["7", id.text] {
            let found = try #require(try entity("PATCH", target.replacing("7", with: text)))
            #expect(found.names(alias).collection == name.replacing("L", with: id.text))
        }
    }
}

@Suite struct RowTests {
    private let rows = Resource(collection: "/rows", item: "/rows?id=eq.{id}")

    private func write(_ method: HTTPRequest.Method, _ id: String, _ body: JSONValue = [:], sequence: Int64 = 1) -> FoldedWrite {
        FoldedWrite(sequence: sequence, method: method, isItem: method != .post, id: id, body: body.serialized())
    }

    private let base: JSONValue = [["id": 1, "state": "open"], ["id": 2, "state": "open"]]

    @Test(
        arguments: [
            (nil, [["id": 1, "state": "done"], ["id": 2, "state": "open"]]), ("state=eq.open", [["id": 2, "state": "open"]]),
            ("select=*&id=eq.1", [["id": 1, "state": "done"]]), ("id=eq.3", []),
        ] as [(String?, JSONValue)])
    func aChangedRowStaysWhereTheQuerySelectsIt(query: String?, shown: JSONValue) throws {
        let all = try #require(base.array)
        let filter = query?.split(separator: "&").last?.split(separator: "=eq.")
        let known = all.filter { row in
            guard let filter, filter.count == 2 else { return true }
            return row[String(filter[0])].map { $0.string ?? $0.number?.literal } == String(filter[1])
        }
        let fold = CollectionFold.fold(.array(known), query: query, with: [write(.patch, "1", ["state": "done"])], resource: rows)
        #expect(fold.value == shown)
    }

    @Test func aNewRowIsFoundByItsLocalID() {
        let create = write(.post, "loc_1", ["state": "open"])
        for (query, count) in [("id=eq.loc_1", 1), ("id=eq.loc_2", 0), ("state=eq.open", 1), ("state=eq.done", 0)] {
            #expect(CollectionFold.fold([], query: query, with: [create], resource: rows).value.array?.count == count, "\(query)")
        }
    }

    @Test func aRowAloneIsFoldedToo() {
        let fold = CollectionFold.fold(
            ["id": 1, "state": "open"], query: "id=eq.1", with: [write(.patch, "1", ["state": "done"])], resource: rows)
        #expect(fold.value == ["id": 1, "state": "done"] && !fold.isDirty)
        let other = CollectionFold.fold(["id": 1], query: "id=eq.1", with: [write(.patch, "2", ["state": "done"])], resource: rows)
        #expect(other.value == ["id": 1] && other.last == nil)
    }

    /// RFC 7396: the base is the only row of its list, and so is the result.
    @Test func aRowIsTheOnlyOneOfItsList() {
        let merged = ItemFold.fold([["id": 1, "state": "open"]], with: [write(.patch, "1", ["state": "done"])], resource: rows)
        #expect(merged == .present([["id": 1, "state": "done"]], last: 1, count: 1))
        let several = ItemFold.fold(base, with: [write(.patch, "1", ["state": "done"])], resource: rows)
        #expect(several == .dirty(base, last: 1, count: 1))
    }
}

@Suite struct CompositeIDTests {
    private let lines = Resource(collection: "/lines", item: "/lines/{order}/{line}")

    @Test func anItemIsFoundByAllItsMembers() {
        let base: JSONValue = [["order": 1, "line": 2, "count": 1], ["order": 3, "line": 2, "count": 1], ["line": 2]]
        let write = FoldedWrite(sequence: 1, method: .patch, isItem: true, id: "3,2", body: Array(#"{"count":5}"#.utf8))
        let fold = CollectionFold.fold(base, query: nil, with: [write], resource: lines)
        #expect(fold.value == [["order": 1, "line": 2, "count": 1], ["order": 3, "line": 2, "count": 5], ["line": 2]])
    }

    @Test func aCreateKeepsTheMembersOfItsClient() {
        let create = FoldedWrite(sequence: 1, method: .post, isItem: false, id: "loc_1", body: Array(#"{"order":4,"line":1}"#.utf8))
        #expect(CollectionFold.fold([], query: nil, with: [create], resource: lines).value == [["order": 4, "line": 1]])
    }
}

@Suite struct SingletonTests {
    private let me = Resource(collection: "", item: "/me")

    private func write(_ method: HTTPRequest.Method, _ body: JSONValue) -> FoldedWrite {
        FoldedWrite(sequence: 1, method: method, isItem: true, id: "", body: body.serialized())
    }

    @Test func writesChangeTheOneItem() {
        let base: JSONValue = ["id": 7, "name": "Ada", "theme": "dark"]
        #expect(
            ItemFold.fold(base, with: [write(.patch, ["theme": "light"])], resource: me)
                == .present(["id": 7, "name": "Ada", "theme": "light"], last: 1, count: 1))
        #expect(ItemFold.fold(nil, with: [write(.put, ["name": "Bob"])], resource: me) == .present(["name": "Bob"], last: 1, count: 1))
    }

    @Test func aPutCreatesNothing() {
        let reply = OptimisticReply.decide(write(.put, ["name": "Bob"]), base: nil, baseIsKnown: false, resource: me)
        #expect(reply == OptimisticReply(status: 200, body: ["name": "Bob"]))
    }
}
