// Every kind of configuration error, with its line number and message (docs/reference/configuration.md#mistakes).
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct ConfigurationErrorTests {
    /// Returns the problems of a YAML text, as printed.
    static func problems(_ yaml: String, environment: [String: String] = [:]) -> [String] {
        do throws(ConfigurationError) {
            _ = try ConfigurationSources(environment: ["HOME": "/home/me"].merging(environment) { $1 }).load(yaml: yaml, named: "r.yaml")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test(arguments: [
        ("storag:\n  cache_limit: 1 GB", "r.yaml:1: unknown key \"storag\" (nearest valid key: storage)"),
        ("storage:\n  cache_limt: 1 GB", "r.yaml:2: unknown key \"cache_limt\" in storage (nearest valid key: cache_limit)"),
        ("proxy:\n  timeouts: { haed: 1s }", "r.yaml:2: unknown key \"haed\" in proxy.timeouts (nearest valid key: head)"),
        ("categories:\n  critical:\n    tll: 1s", "r.yaml:3: unknown key \"tll\" in categories.critical (nearest valid key: ttl)"),
        (
            "upstreams:\n  - name: a\n    origin: http://a\n    probe: {path: /, expcet: 204}",
            "r.yaml:4: unknown key \"expcet\" in upstreams[0].probe (nearest valid key: expect)"
        ),
    ])
    func `An unknown key is told with the nearest one`(yaml: String, expected: String) {
        #expect(Self.problems(yaml) == [expected])
    }

    @Test(arguments: [
        (
            "storage:\n\n  cache_limit: 5 XB",
            "r.yaml:3: storage.cache_limit: \"5 XB\" is not a size such as 500 MB or 512 KiB: unknown unit 'XB'; "
                + "known are B, kB, KiB, MB, MiB, GB, GiB, TB, TiB"
        ),
        (
            "storage:\n  pin_cap: 0.25",
            "r.yaml:2: storage.pin_cap: \"0.25\" is not a share such as 25%: '0.25' is not a share from 0% to 100%"
        ),
        ("storage: { principal_share: 0% }", "r.yaml:1: storage.principal_share: \"0%\" must be at least 1%"),
        ("proxy: { listen: 7625 }", "r.yaml:1: proxy.listen: \"7625\" is not an address such as 127.0.0.1:7625 or [::1]:7625"),
        (
            "proxy: { listen: \"127.0.0.1:70000\" }",
            "r.yaml:1: proxy.listen: \"127.0.0.1:70000\" is not an address such as 127.0.0.1:7625 or [::1]:7625"
        ),
        ("proxy:\n  allow:\n    - 10.0.0.0/8\n    - ten", "r.yaml:4: proxy.allow[1]: \"ten\" is not a network such as 10.0.0.0/8"),
        ("proxy: { connect_ports: [0] }", "r.yaml:1: proxy.connect_ports[0]: \"0\" is not a whole number from 1 to 65535"),
        ("proxy: { connect_ports: [[443]] }", "r.yaml:1: proxy.connect_ports[0]: one value belongs here, not a list"),
        ("secrets: [\"a=b\"]", "r.yaml:1: secrets[0]: \"a=b\" is not the name of a query parameter"),
        ("proxy:\n  listen:", "r.yaml:2: proxy.listen: one value belongs here"),
        ("cleanup: { interval: 0s }", "r.yaml:1: cleanup.interval: \"0s\" must be longer than 0s"),
        ("proxy: { limits: { head: 0 B } }", "r.yaml:1: proxy.limits.head: \"0 B\" must be at least 1 B"),
        ("proxy: no", "r.yaml:1: proxy: a mapping belongs here, not a single value"),
        ("- proxy", "r.yaml:1: the configuration: a mapping belongs here, not a list"),
        ("defaults: { intercept: maybe }", "r.yaml:1: defaults.intercept: \"maybe\" is not true or false"),
        (
            "defaults: { policy: offline }",
            "r.yaml:1: defaults.policy: \"offline\" is not one of standard, offline-first (nearest valid value: offline-first)"
        ),
    ])
    func `A bad value is told with what belongs there`(yaml: String, expected: String) {
        #expect(Self.problems(yaml) == [expected])
    }

    /// Keys of one upstream besides its name and origin, on line 3 of the file.
    @Test(arguments: [
        ("gateway: localhost", "upstreams[0].gateway: \"localhost\" is not an address such as 127.0.0.1:7625 or [::1]:7625"),
        ("identity: header", "upstreams[0].identity: \"header\" is not auto, single, header:NAME or cookie:NAME"),
        ("via: ftp://x:1", "upstreams[0].via: \"ftp://x:1\" is not a proxy such as http://host:3128 or socks5h://host:1080"),
        ("tls: { min_version: 1.1 }", "upstreams[0].tls.min_version: \"1.1\" is not one of 1.2, 1.3 (nearest valid value: 1.2)"),
        ("tls: { client_cert: a.pem }", "upstreams[0].tls.client_cert: needs tls.client_key"),
        ("tls: { client_key: a.pem }", "upstreams[0].tls.client_key: needs tls.client_cert"),
        ("probe: { interval: 1s }", "upstreams[0].probe: path is missing"),
        ("probe: { path: /, expect: [204, 99] }", "upstreams[0].probe.expect[1]: \"99\" is not a whole number from 100 to 599"),
        ("queue: { methods: [GET] }", "upstreams[0].queue.methods[0]: \"GET\" is not a method that writes, such as POST"),
        ("queue: { max_attempts: 0 }", "upstreams[0].queue.max_attempts: \"0\" is not a whole number from 1 to 1000000"),
        ("queue: { squash: on }", "upstreams[0].queue.squash: \"on\" is not one of off, safe (nearest valid value: off)"),
        ("idempotency: { header: \"a b\" }", "upstreams[0].idempotency.header: \"a b\" is not the name of a header field"),
        ("order: none", "upstreams[0].order: \"none\" is not one of entity, global (nearest valid value: entity)"),
        ("routes: [{ category: critical }]", "upstreams[0].routes[0]: match is missing"),
        ("routes: [{ match: GTE /v1 }]", "upstreams[0].routes[0].match: \"GTE /v1\" is not a pattern such as \"GET /v1/notes/*\""),
        ("routes: [{ match: v1 }]", "upstreams[0].routes[0].match: \"v1\" is not a pattern such as \"GET /v1/notes/*\""),
        (
            "routes: [{ match: /, category: asset }]",
            "upstreams[0].routes[0].category: there is no category \"asset\" (nearest valid value: assets)"
        ),
        (
            "routes: [{ match: /, strategy: network-only, store: always }]",
            "upstreams[0].routes[0].store: network-only stores nothing, so store cannot be always"
        ),
        ("routes: [{ match: /, read: true, queue: always }]", "upstreams[0].routes[0].queue: a request that reads is never queued"),
        (
            "routes: [{ match: /, read: true, kind: graphql }]",
            "upstreams[0].routes[0].read: kind: graphql decides itself which requests read"
        ),
        (
            "routes: [{ match: POST /a.git/**, kind: git }]",
            "upstreams[0].routes[0].kind: kind: git needs every method of the repository: leave the method out of match"
        ),
        ("routes: [{ match: /, kind: git, queue: always }]", "upstreams[0].routes[0].queue: kind: git queues nothing"),
        (
            "routes: [{ match: /, kind: git, cache: body }]", "upstreams[0].routes[0].cache: kind: git decides itself which requests read"
        ),
        (
            "routes: [{ match: PUT /, read: true }]",
            "upstreams[0].routes[0].read: a PUT is not read by its body; possible for GET, OPTIONS, POST, PROPFIND, QUERY, REPORT, SEARCH"
        ),
        (
            "routes: [{ match: /, kind: s3, offline_response: optimistic }]",
            "upstreams[0].routes[0].offline_response: kind: s3 has replies of its own"
        ),
        (
            "routes: [{ match: /, kind: s3, offline_response: { status: 200 } }]",
            "upstreams[0].routes[0].offline_response: kind: s3 has replies of its own"
        ),
        (
            "routes: [{ match: /, offline_response: { status: 204, body: ok } }]",
            "upstreams[0].routes[0].offline_response.body: a 204 has no body"
        ),
        (
            "routes: [{ match: /, offline_response: { type: text } }]",
            "upstreams[0].routes[0].offline_response.type: \"text\" is not a media type such as text/plain"
        ),
        (
            "routes: [{ match: /, offline_response: { status: 300 } }]",
            "upstreams[0].routes[0].offline_response.status: \"300\" is not a whole number from 200 to 299"
        ),
        (
            "routes: [{ match: /, offline_response: accept }]",
            "upstreams[0].routes[0].offline_response: \"accept\" is not one of accepted, optimistic (nearest valid value: accepted)"
        ),
        ("queue: { repeats: all }", "upstreams[0].queue.repeats: \"all\" is not one of same, each (nearest valid value: same)"),
        (
            "resources: [{ collection: /n, item: \"/n/{id}{v}\" }]",
            "upstreams[0].resources[0].item: \"/n/{id}{v}\" is not a path such as /v1/notes/{id}, /Products({id}) or /me"
        ),
        (
            "resources: [{ collection: /n, item: \"/n?a=1\" }]",
            "upstreams[0].resources[0].item: \"/n?a=1\" is not a path such as /v1/notes/{id}, /Products({id}) or /me"
        ),
        (
            "resources: [{ collection: \"/{a}/{a}\" }]",
            "upstreams[0].resources[0].collection: \"/{a}/{a}\" is not a path such as /v1/notes or /projects/{project}/tasks"
        ),
        (
            "resources: [{ item: \"/n/{id}\" }]",
            "upstreams[0].resources[0].collection: is missing: an item with {id} belongs to one; without {id}, item is a single item"
        ),
        (
            "resources: [{ id: /id }]",
            "upstreams[0].resources[0].collection: is missing; only a single item such as /me, which item names, has none"
        ),
        ("resources: [{ item: /me }, { item: /me }]", "upstreams[0].resources[1].item: /me is described already"),
        (
            "resources: [{ collection: /n, item: /n/id }]",
            "upstreams[0].resources[0].item: needs {id}; a single item such as /me has no collection"
        ),
        ("resources: [{ collection: /n, id: id }]", "upstreams[0].resources[0].id: \"id\" is not a JSON Pointer such as /id"),
        (
            "resources: [{ collection: /n, sync: { push: /p, batch: { body: \"{\" } } }]",
            "upstreams[0].resources[0].sync.batch.body: \"{\" is not a text of JSON"
        ),
        (
            "resources: [{ collection: /n, sync: { push: /p, batch: { operation: '\"{id}\"' } } }]",
            "upstreams[0].resources[0].sync.batch.operation: needs {id}, {method} and {target} or {url}"
        ),
        (
            "resources: [{ collection: /n, sync: { push: /p } }, { collection: /m, sync: { push: /p, batch: { results: \"\" } } }]",
            "upstreams[0].resources[1].sync.batch: differs from that of another resource with this push"
        ),
        (
            "resources: [{ collection: /n, mark: sync }]",
            "upstreams[0].resources[0].mark: \"sync\" is not a JSON Pointer to a member such as /_sync"
        ),
        (
            "resources: [{ collection: /n, mark: /id }]",
            "upstreams[0].resources[0].mark: is a member of the upstream's; name one that its entries do not have"
        ),
        (
            "resources: [{ collection: /n, offline_response: optimistic }]",
            "upstreams[0].resources[0].offline_response: optimistic needs item, the path of one entity"
        ),
        (
            "resources: [{ collection: /n, fields: { /a: serve } }]",
            "upstreams[0].resources[0].fields./a: \"serve\" is not one of server, client, lww, max, min, set, counter, flag, text3, ask, "
                + "keyed:ID (nearest valid value: server)"
        ),
        (
            "routes: [{ match: /, success: { status: [404], pointer: /ok, absent: true } }]",
            "upstreams[0].routes[0].success.status[0]: \"404\" is not a whole number from 200 to 299"
        ),
        ("routes: [{ match: /, success: {} }]", "upstreams[0].routes[0].success: needs status or pointer"),
        ("routes: [{ match: /, success: { absent: true } }]", "upstreams[0].routes[0].success.absent: needs pointer"),
        ("routes: [{ match: /, success: { equals: true } }]", "upstreams[0].routes[0].success.equals: needs pointer"),
        ("routes: [{ match: /, success: { pointer: /ok } }]", "upstreams[0].routes[0].success.pointer: needs absent or equals"),
        (
            "resources: [{ collection: /n, success: { pointer: /ok, absent: true, equals: 1 } }]",
            "upstreams[0].resources[0].success.equals: cannot be combined with absent"
        ),
        (
            "resources: [{ collection: /n, success: { pointer: /ok, absent: true, equals: \"{}\" } }]",
            "upstreams[0].resources[0].success.equals: \"{}\" is not a JSON string, number or boolean"
        ),
        ("routes: [{ match: /, logout: maybe }]", "upstreams[0].routes[0].logout: \"maybe\" is not true or false"),
        ("resources: [{ collection: /n, delta: { query: \"a={cursor}\" } }]", "upstreams[0].resources[0].delta: cursor is missing"),
        (
            "resources: [{ collection: /n, sync: { pull: /pull } }]",
            "upstreams[0].resources[0].sync.pull: \"/pull\" is not a path whose query has {cursor}, such as /v1/sync/pull?since={cursor}"
        ),
        (
            "resources: [{ collection: \"/{l}/n\", delta: { query: \"a={cursor}\", cursor: /u } }]",
            "upstreams[0].resources[0].delta: cannot be requested: the only variable allowed in its paths is {id} of item"
        ),
        ("resources: [{ collection: /n }, { collection: /n }]", "upstreams[0].resources[1].collection: /n is described already"),
    ])
    func `What is wrong within an upstream is told at its line`(keys: String, expected: String) {
        #expect(Self.problems("upstreams:\n  - { name: a, origin: http://a.example,\n      \(keys) }") == ["r.yaml:3: \(expected)"])
    }

    @Test(arguments: [
        ("storage: { data_limit: 7999999 B }", "r.yaml:1: storage.data_limit: 7999999 B is too little, at least 8 MB are needed"),
        (
            "storage:\n  cache_dir: /a\n  state_dir: /a/state",
            "r.yaml:3: storage.state_dir: must not lie in storage.cache_dir, which may be deleted at any time"
        ),
        (
            "storage:\n  cache_dir: /home/me/.local/state/rockpool/",
            "r.yaml:2: storage.state_dir: must not be storage.cache_dir, which may be deleted at any time"
        ),
        (
            "categories:\n  critical: { guarantee: 81% }",
            "r.yaml:1: categories: the guarantees add up to 101%, more than 100% (critical 81%, important 20%)"
        ),
        ("categories:\n  ephemeral: { guarantee: 6% }", "r.yaml:2: categories.ephemeral.guarantee: 6% is more than its share of 5%"),
        ("categories: { auto: {} }", "r.yaml:1: categories.auto: a category cannot be named \"auto\""),
        (
            "defaults: { category: critcal }",
            "r.yaml:1: defaults.category: there is no category \"critcal\" (nearest valid value: critical)"
        ),
        ("admin:\n  listen: 127.0.0.1:7625", "r.yaml:2: admin.listen: port 7625 is taken by proxy.listen"),
        ("admin:\n  listen: localhost:7625", "r.yaml:2: admin.listen: port 7625 is taken by proxy.listen"),
        (
            "upstreams:\n  - name: a\n    origin: http://a\n    gateway: 127.0.0.1:7625",
            "r.yaml:4: upstreams[0].gateway: port 7625 is taken by proxy.listen"
        ),
        (
            "proxy:\n  listen: 0.0.0.0:7625",
            "r.yaml:2: proxy.listen: 0.0.0.0 can be reached from the network; name the networks that may connect in proxy.allow"
        ),
        (
            "upstreams:\n  - { name: a, origin: http://a }\n  - { name: a, origin: http://b }",
            "r.yaml:3: upstreams[1].name: another upstream is named \"a\" too"
        ),
        (
            "upstreams:\n  - { name: a, origin: https://x }\n  - { name: b, origin: \"https://X:443/\" }",
            "r.yaml:3: upstreams[1].origin: https://x is the origin of \"a\" already"
        ),
        (
            "upstreams:\n  - { name: a, origin: https://x/v1 }\n  - { name: b, origin: https://x/v2 }\n  - { name: c, origin: https://x/v1/ }",
            "r.yaml:4: upstreams[2].origin: https://x/v1 is the origin of \"a\" already"
        ),
        (
            "upstreams:\n  - name: a\n    origin: http://127.0.0.1:7625",
            "r.yaml:3: upstreams[0].origin: http://127.0.0.1:7625 is Rockpool's own listener, proxy.listen"
        ),
        ("upstreams:\n  - origin: http://a", "r.yaml:2: upstreams[0]: name is missing"),
        (
            "via:\n  - hosts: [\"*\"]\n    url: http://p:1\n    others:\n      - url: http://p:1",
            "r.yaml:5: via[0].others[0].url: names a parent twice"
        ),
        (
            "upstreams:\n  - name: a\n    origin: http://a\n    routes:\n      - match: /a\n        ttl: { min: 2h, max: 1h }",
            "r.yaml:6: upstreams[0].routes[0].ttl.min: is above max"
        ),
        ("upstreams:\n  - name: a", "r.yaml:2: upstreams[0]: origin is missing"),
        (
            "upstreams:\n  - name: a\n    origin: http://a/v1?x",
            "r.yaml:3: upstreams[0].origin: \"http://a/v1?x\" is not an origin such as https://api.example.com, or one with a path"
        ),
        ("proxy: {}\nproxy: {}", "r.yaml:1: given twice in the mapping that begins here: \"proxy\""),
    ])
    func `An impossible combination is told at the key to change`(yaml: String, expected: String) {
        #expect(Self.problems(yaml) == [expected])
    }

    @Test(arguments: [
        "proxy: { listen: 127.0.0.1:0 }\nadmin: { listen: 127.0.0.1:0 }",
        "proxy: { listen: 127.0.0.1:9000 }\nadmin: { listen: 127.0.0.2:9000 }",
        "proxy: { listen: 0.0.0.0:9000, allow: [192.168.0.0/16] }",
        "storage: { data_limit: 8 MB }",
        "categories: { critical: { guarantee: 80% } }",
        "storage: { cache_dir: /a, state_dir: /ab }",
        "upstreams:\n  - { name: a, origin: http://x }\n  - { name: b, origin: https://x }",
        "upstreams:",
    ])
    func `What only looks like one is let through`(yaml: String) {
        #expect(Self.problems(yaml).isEmpty)
    }

    @Test func `All problems are told at once, by line`() {
        let yaml = "upstreams:\n  - name: a\n    origin: x\nstorage:\n  data_limit: 1 MB\n  min_free: much\nprox: {}\n"
        #expect(Self.problems(yaml).map { $0.prefix(9) } == ["r.yaml:3:", "r.yaml:5:", "r.yaml:6:", "r.yaml:7:"])
    }

    @Test func `Text that is no YAML is told with its line`() {
        #expect(
            Self.problems("proxy:\n  listen: [\n  allow: []\n\n") == [
                "r.yaml:5: is not YAML: did not find expected ',' or ']' (while parsing a flow sequence from line 2)"
            ])
    }

    @Test func `A file that is not there is told`() {
        #expect(
            throws: ConfigurationError(problems: [
                Problem(place: .file("/no/such.yaml", line: 0), message: "cannot be read: No such file or directory")
            ])
        ) {
            try ConfigurationSources(file: "/no/such.yaml", environment: [:]).load()
        }
    }

    @Test(
        arguments: [
            ("htp://a.example.com", "http://a.example.com"), ("htps://a.example.com/v1", "https://a.example.com/v1"),
            ("HTTPS://a.example.com", "https://a.example.com"), ("https:/a.example.com:8443", "https://a.example.com:8443"),
            ("http//localhost:8000", "http://localhost:8000"), ("a.example.com/v1", "https://a.example.com/v1"),
            ("localhost:8000", "http://localhost:8000"), ("ftp://a.example.com", nil), ("nonsense", nil), ("http://a.example.com?x", nil),
        ] as [(String, String?)])
    func aMistypedOriginIsToldWithTheOneThatIsMeant(text: String, meant: String?) {
        let problem = Self.problems("upstreams: [{ name: a, origin: \"\(text)\" }]").first ?? ""
        #expect(problem.contains("\"\(text)\" is not an origin"), "\(problem)")
        #expect(problem.firstMatch(of: /; did you mean: (.*)$/).map { String($0.1) } == meant, "\(problem)")
    }

    /// The form of the log is known beside a mistake, so that the mistake has that form.
    @Test(arguments: [("log: { format: json }\nproxy: { lsten: x }", LogFormat.json), ("proxy: { lsten: x }", .text), ("log: [", .text)])
    func theFormOfTheLogIsKnownBesideAMistake(yaml: String, format: LogFormat) {
        #expect { try ConfigurationSources(environment: [:]).load(yaml: yaml, named: "r.yaml") } throws: { error in
            (error as? ConfigurationError)?.logFormat == format
        }
    }
}
