// Environment variables override the file, and flags override variables; directories follow XDG and `~`
// (docs/reference/configuration.md#sources).
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct OverrideTests {
    private func load(
        _ yaml: String = "", _ environment: [String: String] = [:], flags: [String: (flag: String, text: String)] = [:]
    ) throws -> LoadedConfiguration {
        let environment = ["HOME": "/home/me"].merging(environment) { $1 }
        return try ConfigurationSources(environment: environment, flags: flags).load(yaml: yaml, named: "r.yaml")
    }

    @Test func `A variable goes before the file, a flag before both`() throws {
        let yaml = "storage: { cache_limit: 1 GB }\n"
        let variable = ["ROCKPOOL_STORAGE_CACHE_LIMIT": "2 GB"]
        #expect(try load(yaml).configuration.storage.cacheLimit == .mb(1000))
        #expect(try load(yaml, variable).configuration.storage.cacheLimit == .mb(2000))
        let flags = ["storage.cache_limit": (flag: "--cache-limit", text: "3 GB")]
        let loaded = try load(yaml, variable, flags: flags)
        #expect(loaded.configuration.storage.cacheLimit == .mb(3000))
        #expect(loaded.places["storage.cache_limit"] == .flag("--cache-limit"))
    }

    @Test func `Every scalar key outside lists has its variable`() throws {
        let configuration = try load(
            "categories: { my-own: {} }",
            [
                "ROCKPOOL_PROXY_LISTEN": "127.0.0.1:1", "ROCKPOOL_PROXY_TIMEOUTS_HEAD": "3s", "ROCKPOOL_PROXY_LIMITS_FIELDS": "7",
                "ROCKPOOL_PROXY_CONNECT_PORTS": "443, 444", "ROCKPOOL_ADMIN_LISTEN": "127.0.0.1:2", "ROCKPOOL_STORAGE_PIN_CAP": "5%",
                "ROCKPOOL_CLEANUP_INTERVAL": "1m", "ROCKPOOL_CATEGORIES_CRITICAL_TTL": "9s",
                "ROCKPOOL_CATEGORIES_MY_OWN_MAX_OBJECT": "1 MB",
                "ROCKPOOL_DEFAULTS_QUEUE_WRITES": "true",
            ]
        ).configuration
        #expect(configuration.proxy.listen == "127.0.0.1:1")
        #expect(configuration.proxy.timeouts.head == .seconds(3))
        #expect(configuration.proxy.limits.fields == 7)
        #expect(configuration.proxy.connectPorts == [443, 444])
        #expect(configuration.admin.listen == "127.0.0.1:2")
        #expect(configuration.storage.pinCapPercent == 5)
        #expect(configuration.cleanup.interval == .minutes(1))
        #expect(configuration.categories.first { $0.name == "critical" }?.ttl == .seconds(9))
        #expect(configuration.categories.first { $0.name == "my-own" }?.maxObject == .mb(1))
        #expect(configuration.defaults.queueWrites)
    }

    @Test(arguments: [
        (["ROCKPOOL_CLEANUP_INTERVAL": "soon"], "ROCKPOOL_CLEANUP_INTERVAL: cleanup.interval: \"soon\" is not a duration"),
        (["ROCKPOOL_CATEGORIES_CRITICAL_GUARANTEE": "90%"], "ROCKPOOL_CATEGORIES_CRITICAL_GUARANTEE: categories: the guarantees add up"),
        (["ROCKPOOL_STORAGE_CACHE_DIR": "/home/me/.local"], "ROCKPOOL_STORAGE_CACHE_DIR: storage.state_dir: must not lie in"),
    ])
    func `A bad variable is told by its name`(environment: [String: String], expected: String) {
        #expect(ConfigurationErrorTests.problems("", environment: environment).map { String($0.prefix(expected.count)) } == [expected])
    }

    @Test func `An unknown variable is a warning with the nearest one, never an error`() throws {
        let loaded = try load("", ["ROCKPOOL_STORAGE_CACHE_LIMT": "1 GB", "ROCKPOOL_BINARY": "x", "OTHER": "y"])
        #expect(loaded.configuration.storage.cacheLimit == .mb(500))
        #expect(loaded.warnings == ["unknown variable ROCKPOOL_STORAGE_CACHE_LIMT (nearest valid variable: ROCKPOOL_STORAGE_CACHE_LIMIT)"])
    }

    @Test func `A GraphQL endpoint among the routes is a warning that says what holds until there is a kind for it`() throws {
        let routes = "routes: [{ match: POST /graphql, cache: body }, { match: POST /search, cache: body }]"
        let loaded = try load("upstreams: [{ name: a, origin: 'http://a', \(routes) }]", [:])
        let warning = try #require(loaded.warnings.first)
        #expect(loaded.warnings.count == 1 && warning.hasPrefix("upstreams[0].routes[0] (POST /graphql): "))
        #expect(warning.contains("hash") && warning.contains("kind: graphql"))
    }

    @Test func `Keys of list items have no variable`() throws {
        let loaded = try load("upstreams: [{ name: a, origin: http://a }]", ["ROCKPOOL_UPSTREAMS_0_NAME": "b"])
        #expect(loaded.configuration.upstreams.map(\.name) == ["a"])
        #expect(loaded.warnings.count == 1)
    }

    @Test(
        arguments: [
            ("", [:], "/home/me/.cache/rockpool", "/home/me/.local/state/rockpool"),
            ("", ["XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/s"], "/c/rockpool", "/s/rockpool"),
            ("", ["XDG_CACHE_HOME": "c"], "/home/me/.cache/rockpool", "/home/me/.local/state/rockpool"),
            ("storage: { cache_dir: ~/x }", ["XDG_CACHE_HOME": "/c"], "/home/me/x", "/home/me/.local/state/rockpool"),
            ("storage: { cache_dir: /x }", ["ROCKPOOL_STORAGE_STATE_DIR": "~/y"], "/x", "/home/me/y"),
        ] as [(String, [String: String], String, String)])
    func `Directories are resolved`(yaml: String, environment: [String: String], cache: String, state: String) throws {
        let storage = try load(yaml, environment).configuration.storage
        #expect(storage.cacheDir == cache)
        #expect(storage.stateDir == state)
    }

    @Test func `Relative paths of a file start beside it`() throws {
        let sources = ConfigurationSources(file: "/etc/rockpool/r.yaml", environment: ["HOME": "/home/me"])
        let yaml = "upstreams: [{ name: a, origin: https://a, tls: { ca_file: ../ca.pem } }]"
        #expect(try sources.load(yaml: yaml, named: "r.yaml").configuration.upstreams.first?.tls.caFile == "/etc/ca.pem")
    }

    @Test func `Each given key knows where it was given`() throws {
        let places = try load("proxy:\n  listen: 127.0.0.1:1\n  timeouts: { head: 1s }\n", ["ROCKPOOL_ADMIN_LISTEN": "127.0.0.1:2"]).places
        #expect(places["proxy.listen"] == .file("r.yaml", line: 2))
        #expect(places["proxy.timeouts.head"] == .file("r.yaml", line: 3))
        #expect(places["admin.listen"] == .variable("ROCKPOOL_ADMIN_LISTEN"))
        #expect(places["proxy.timeouts.body"] == nil)
    }
}
