// The plan for a request.
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct RouteTableTests {
    private static let origin = OriginAddress(scheme: .https, host: "api.example.com")

    private static let table: RouteTable = {
        var configuration = Configuration()
        configuration.upstreams = [
            Upstream(
                name: "notes", origin: origin,
                routes: [
                    Route(match: "GET /v1/me", category: "critical"),
                    Route(match: "/v1/media/**", category: "assets", strategy: .networkFirst, store: .always),
                    Route(match: "POST /v1/login", queue: .never),
                    Route(match: "POST /v1/search", queue: .never, cache: .body),
                    Route(match: "PURGE /v1/x", queue: .always),
                    Route(match: "/v1/me", category: "nobody"),
                ],
                resources: [
                    Resource(collection: "/v1/notes", item: "/v1/notes/{id}"),
                    Resource(collection: "/v1/notes/{note}/comments"),
                    Resource(collection: "/v1/lists/{list}/items/", item: "/v1/items/{list}/{id}/{part}"),
                ]),
            Upstream(name: "other", origin: OriginAddress(scheme: .http, host: "other.test"), policy: .standard),
        ]
        return RouteTable(configuration)
    }()

    /// Several upstreams of one origin: the longest path that covers the request, else the first with the shortest.
    @Test(arguments: [
        ("/api/v1/notes", "one", true), ("/api/v1", "one", true), ("/api/v1?a=/api/v2", "one", true), ("/api/v2/notes", "two", true),
        ("/api/v2/deep/x", "deep", true), ("/api/v2/deeper", "two", true), ("/api/v10/x", "two", true), ("/", "two", true),
        ("/%61pi/v2/notes", "two", true), ("/api/v2/secret", "two", false), ("/api/v1/..%2fv2/secret", "one", false),
        ("/api/v1/..%2fv2/notes", "one", true), ("/login", "two", false), ("/api/v1/secret", "one", true),
    ])
    func theLongestPathThatCoversARequest(target: String, name: String, isStored: Bool) {
        var configuration = Configuration()
        configuration.upstreams = [("two", "/api/v2"), ("one", "/api/v1"), ("deep", "/api/v2/deep")].map { name, path in
            var upstream = Upstream(name: name, origin: Self.origin)
            upstream.basePath = path
            return upstream
        }
        configuration.upstreams[0].routes = [Route(match: "/api/v2/secret", store: .never), Route(match: "/api/v2/notes")]
        configuration.upstreams[0].routes[1].onRefused = .hold
        configuration.upstreams[0].refresh = RefreshRecipe(path: "/api/v2/token", login: "/login")
        let table = RouteTable(configuration)
        let plan = table.plan(for: RequestHead(method: .get, origin: Self.origin, target: target))
        #expect(plan.upstream?.name == name && (plan.store != .never) == isStored, "\(plan.upstream?.name ?? "") \(plan.store)")
        #expect(table.upstream(for: Self.origin, target: target)?.name == name && table.upstream(for: Self.origin)?.name == "two")
        #expect(table.pattern(of: "GET", target: "/api/v2/secret", upstream: "two") == "/api/v2/secret")
        #expect(table.holdsRefused(upstream: "two", method: "PUT", target: "/api/v2/notes") && table.strictRoutes.keys.sorted() == ["two"])
    }

    /// A request that a route declares to ask is a read that is never queued, unless its method stores or removes something.
    @Test func whatAsksIsARead() throws {
        var route = Route(match: "/ask", cache: .standard)
        route.read = true
        var configuration = Configuration()
        configuration.upstreams = [
            Upstream(name: "a", origin: Self.origin, routes: [route, Route(match: "/**", queue: .always)])
        ]
        let table = RouteTable(configuration)
        func plan(_ method: HTTPRequest.Method, _ target: String) -> RoutePlan {
            table.plan(for: RequestHead(method: method, origin: Self.origin, target: target))
        }
        #expect(!plan(.post, "/ask").isWrite && !plan(.post, "/ask").queueable)
        // It is not answered from the store with what the last such statement was answered.
        #expect(plan(.post, "/ask?q=DROP%20TABLE%20t").isWrite && !plan(.post, "/ask?q=DROP%20TABLE%20t").queueable)
        #expect(plan(.put, "/ask").isWrite && !plan(.put, "/ask").queueable)
        #expect(!table.plan(for: RequestHead(method: .post, origin: Self.origin, target: "/ask"), isWrite: true).queueable)
        #expect(plan(.post, "/x?q=drop").queueable && !plan(.post, "/x?q=DROP%20TABLE%20t").queueable)
    }

    private func plan(_ method: String, _ target: String, origin: OriginAddress = Self.origin) throws -> RoutePlan {
        let method = try #require(HTTPRequest.Method(method))
        return Self.table.plan(for: RequestHead(method: method, origin: origin, target: target))
    }

    @Test func upstreamsAreFound() {
        #expect(Self.table.upstream(named: "notes")?.origin == Self.origin)
        #expect(Self.table.upstream(named: "nobody") == nil)
        #expect(Self.table.upstream(for: Self.origin)?.name == "notes")
        #expect(Self.table.upstream(for: OriginAddress(scheme: .http, host: "api.example.com")) == nil)
    }

    @Test func whatHoldsTokensIsNeitherStoredNorQueued() throws {
        let shop = OriginAddress(scheme: .https, host: "shop.example")
        var configuration = Configuration()
        configuration.defaults.queueWrites = true
        configuration.upstreams = [
            Upstream(
                name: "notes", origin: Self.origin, refresh: RefreshRecipe(path: "https://id.example/token", login: "/v1/login"),
                routes: [Route(match: "/v1/**", store: .always)]),
            Upstream(name: "shop", origin: shop, refresh: RefreshRecipe(path: "/token?x")),
        ]
        let table = RouteTable(configuration)
        for url in ["https://id.example/token?y", "https://api.example.com/v1/login", "https://shop.example/token"] {
            for method in [HTTPRequest.Method.get, .post] {
                let plan = table.plan(for: try RequestHead(method: method, url: url))
                #expect(plan.store == .never && !plan.queueable, "\(method) \(url)")
            }
        }
        for url in ["https://id.example/tokens", "https://api.example.com/tokens", "https://shop.example/v1/logins"] {
            let plan = table.plan(for: try RequestHead(method: .post, url: url))
            #expect(plan.store == .standard && plan.queueable, "\(url)")
        }
    }

    @Test func theFirstRouteWins() throws {
        let me = try plan("GET", "/v1/me?x=/v1/media/")
        #expect(me.category == .critical)
        #expect(me.route?.match == "GET /v1/me")
        #expect(me.upstream?.name == "notes")
        #expect((me.strategy, me.policy, me.store) == (.cacheFirst, .offlineFirst, .standard))
        let media = try plan("GET", "/v1/media/a.png")
        #expect(media.category == .assets)
        #expect((media.strategy, media.store) == (.networkFirst, .always))
        #expect(try plan("PUT", "/v1/me").category == nil)
        #expect(try plan("GET", "/v1/notes").route == nil)
        #expect(try plan("GET", "/", origin: OriginAddress(scheme: .http, host: "other.test")).policy == .standard)
    }

    @Test(arguments: [
        ("GET", "/v1/notes", false, false), ("PRI", "/v1/notes", false, false), ("QUERY", "/v1/notes", false, false),
        ("POST", "/v1/notes", true, true), ("DELETE", "/v1/notes/1", true, true),
        ("POST", "/v1/login", true, false), ("POST", "/v1/search", false, false), ("MKCOL", "/v1/a", true, true),
        ("PURGE", "/v1/x", true, true),
    ])
    func writes(method: String, target: String, isWrite: Bool, queueable: Bool) throws {
        let plan = try plan(method, target)
        #expect(plan.isWrite == isWrite)
        #expect(plan.queueable == queueable)
    }

    @Test(
        arguments: [
            ("GET", "/v1/notes?page=2", "/v1/notes", nil, nil, false, "/v1/notes"),
            ("POST", "/v1/notes/", "/v1/notes", nil, nil, false, "/v1/notes"),
            ("GET", "/v1/notes/17", "/v1/notes/17", "17", nil, true, "/v1/notes"),
            ("PUT", "/v1/notes/a%2Fb", "/v1/notes/a%2Fb", "a/b", nil, true, "/v1/notes"),
            ("POST", "/v1/notes/17/publish", "/v1/notes/17", "17", "publish", true, "/v1/notes"),
            ("POST", "/v1/notes/17/comments", "/v1/notes/17/comments", nil, nil, false, "/v1/notes/{note}/comments"),
            ("PATCH", "/v1/notes/17/comments/3", "/v1/notes/17/comments/3", "3", nil, true, "/v1/notes/{note}/comments"),
            ("DELETE", "/v1/items/4/5/x", "/v1/items/4/5/x", "5", nil, true, "/v1/lists/{list}/items/"),
            ("POST", "/v1/lists/4/items", "/v1/lists/4/items", nil, nil, false, "/v1/lists/{list}/items/"),
            ("PUT", "/v2/things/9?force=1", "/v2/things/9", nil, nil, true, nil),
            ("POST", "/v2/things/", "/v2/things", nil, nil, false, nil),
        ] as [(String, String, String, String?, String?, Bool, String?)])
    func entities(method: String, target: String, path: String, id: String?, action: String?, isItem: Bool, collection: String?) throws {
        let entity = try #require(try plan(method, target).entity)
        #expect(entity.path == path)
        #expect(entity.id == id)
        #expect(entity.action == action)
        #expect(entity.isItem == isItem)
        #expect(entity.resource?.collection == collection)
    }

    @Test(arguments: ["/v1/other", "/v1/notes/17/history", "/v1/notes//x", "/"])
    func readsOfUndeclaredEntitiesHaveNone(target: String) throws {
        #expect(try plan("GET", target).entity == nil)
    }

    @Test func undeclaredHostsFollowTheDefaults() throws {
        let host = OriginAddress(scheme: .http, host: "elsewhere.test")
        let read = try plan("GET", "/a", origin: host)
        #expect(read == RoutePlan())
        let write = try plan("POST", "/a", origin: host)
        #expect(write == RoutePlan(entity: EntityMatch(path: "/a", isItem: false), isWrite: true))

        var configuration = Configuration()
        configuration.defaults.category = "ephemeral"
        configuration.defaults.policy = .offlineFirst
        configuration.defaults.queueWrites = true
        let table = RouteTable(configuration)
        #expect(table.plan(for: RequestHead(method: .get, origin: host, target: "/a")).category == .ephemeral)
        let queued = table.plan(for: RequestHead(method: .put, origin: host, target: "/a"))
        #expect(queued.queueable)
        #expect(queued.policy == .offlineFirst)
    }

    // MARK: spellings

    /// Spellings of `/v1/login` that a server may take for it.
    private static let spellings = [
        "/v1/login", "/v1/%6cogin", "/v1//login", "//v1/login", "/v1/./login", "/v1/x/../login", "/v1/%2e/login", "/v1%2Flogin",
        "/v1/login/", "/v1/login/.", "/v1/login;a=1", "/v1;a/login", "/v1%5Clogin", "/v1/x/%2E%2e%2flogin", "/v1/x/%252e%252e/login",
        "/../v1/login", "/v1/%CC%81/../login",
    ]

    private static func table(_ routes: [Route], refresh: RefreshRecipe? = nil) -> RouteTable {
        var upstream = Upstream(name: "notes", origin: origin, routes: routes)
        upstream.refresh = refresh
        var configuration = Configuration()
        configuration.upstreams = [upstream]
        return RouteTable(configuration)
    }

    /// What a route forbids is forbidden under every spelling, also where the spelling itself matches a route that permits more.
    @Test(arguments: spellings) func forbiddenUnderEverySpelling(target: String) {
        var end = Route(match: "/v1/login")
        end.logout = true
        let request = RequestHead(method: .post, origin: Self.origin, target: target)
        for other in ["/w/**", "/**"] {
            let permits = Route(match: other, queue: .always, store: .always)
            func plan(_ route: Route) -> RoutePlan { Self.table([route, permits]).plan(for: request) }
            #expect(!plan(Route(match: "/v1/login", queue: .never)).queueable)
            #expect(plan(Route(match: "POST /v1/login", store: .never)).store == .never)
            let logout = plan(end)
            #expect(logout.route?.logout == true && logout.store == .never && logout.strategy == .networkOnly)
        }
        for path in ["/v1/login", Self.origin.url + "/v1/login", "/v1/./login/"] {
            let plan = Self.table([], refresh: RefreshRecipe(path: path)).plan(for: request)
            #expect(!plan.queueable && plan.store == .never, "\(path)")
        }
        var elsewhere = request
        elsewhere.origin = OriginAddress(scheme: .https, host: "login.test")
        let holdsTokens = Self.table([], refresh: RefreshRecipe(path: "https://login.test/v1/login")).plan(for: elsewhere)
        #expect(holdsTokens.store == .never)
    }

    @Test(arguments: ["/v1/login", "/v1/./login", "/v1%2flogin", "/v1/login/"]) func aForbiddingPatternMayBeSpelledOddly(match: String) {
        let request = RequestHead(method: .post, origin: Self.origin, target: "/v1//login")
        #expect(!Self.table([Route(match: match, queue: .never)]).plan(for: request).queueable)
    }

    /// The spelling that a request was given decides what a route permits.
    @Test(arguments: ["/v1/notes/a%2Fb", "/v1/logins", "/v1/login%2Fx", "/v1/log/in", "/v1/login/x/.."])
    func otherPathsKeepTheirRoute(target: String) {
        let table = Self.table([Route(match: "POST /v1/login", queue: .never), Route(match: "/v1/*/*", category: "assets")])
        let plan = table.plan(for: RequestHead(method: .post, origin: Self.origin, target: target))
        #expect(plan.queueable == (target != "/v1/login/x/.."))
        #expect((plan.route?.category == "assets") == ["/v1/notes/a%2Fb", "/v1/log/in"].contains(target))
    }

    @Test func theFirstRouteAppliesToOtherSpellingsToo() {
        let table = Self.table([Route(match: "/v1/open/*"), Route(match: "/v1/**", queue: .never)])
        #expect(table.plan(for: RequestHead(method: .post, origin: Self.origin, target: "/v1//open/a")).queueable == false)
        #expect(table.plan(for: RequestHead(method: .post, origin: Self.origin, target: "/x/../v1/open/a")).queueable)
    }
}
