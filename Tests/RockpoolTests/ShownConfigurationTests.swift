// `Config/rockpool.yaml` lists the defaults, and the output of `config show` reads back as the same configuration
// (docs/reference/configuration.md).
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct ShownConfigurationTests {
    /// The text of `Config/rockpool.yaml`.
    static func example() throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent("Config/rockpool.yaml"), encoding: .utf8)
    }

    /// Returns the example with the upstream's lines uncommented, as its own comment instructs.
    static func uncommented() throws -> String {
        var isExample = false
        return try example().split(separator: "\n", omittingEmptySubsequences: false).map { line in
            if line == "# begin example" { isExample = true }
            if line == "# end example" { isExample = false }
            return isExample && line.hasPrefix("#   ") ? String(line.dropFirst(2)) : String(line)
        }.joined(separator: "\n")
    }

    /// Decodes a YAML text without resolving directories.
    static func decoded(_ yaml: String) throws -> Configuration {
        var loaded = try ConfigurationSources(environment: ["HOME": "/~"]).load(yaml: yaml, named: "r.yaml").configuration
        loaded.storage.cacheDir = loaded.storage.cacheDir.replacing("/~/", with: "~/")
        loaded.storage.stateDir = loaded.storage.stateDir.replacing("/~/", with: "~/")
        return loaded
    }

    @Test func `The example file holds every default`() throws {
        #expect(try Self.decoded(Self.example()) == Configuration())
        #expect(try Self.decoded("") == Configuration())
    }

    @Test func `The example upstream holds every default of an upstream`() throws {
        let upstreams = try Self.decoded(Self.uncommented()).upstreams
        var expected = Upstream(name: "notes", origin: OriginAddress(scheme: .https, host: "api.example.com"))
        expected.probe = Probe(path: "/healthz", expect: [204])
        expected.refresh = RefreshRecipe(path: "/v1/token", login: "/v1/login")
        expected.sign = SigningSettings(sigV4: SigV4Rule(keyID: "AKIA1", secretFile: "/etc/rockpool/s3"))
        expected.routes = [
            Route(match: "GET /v1/me", category: "critical"),
            Route(match: "/v1/media/**", category: "assets", strategy: .cacheFirst),
            Route(match: "POST /v1/login", queue: .never),
            Route(match: "POST /v1/search"),
            Route(match: "PROPFIND /dav/**", cache: .body),
            Route(match: "/v1/list", searchVariance: SearchVariance(fieldValue: #"key-order, params=("utm_source")"#)),
            Route(match: "/v1/reports/**", store: .always),
            Route(match: "POST /v1/rpc/**"),
            Route(match: "POST /v1/ledger"),
            Route(match: "/v1/prices"),
            Route(match: "/v1/images/**"),
            Route(match: "POST /v1/logout", queue: .never),
            Route(match: "POST /graphql", kind: .graphql, lane: "/id"),
            Route(match: "POST /v1/traces", kind: .telemetry),
            Route(match: "PUT /rooms/*/send/**"),
            Route(match: "/pool.git/**", kind: .git),
            Route(match: "POST /api", kind: .graphql),
            Route(match: "/v1/events/**"),
            Route(match: "POST /services/**"),
        ]
        expected.routes[3].read = true
        expected.routes[7].success = SuccessRule(pointer: "/error", absent: true)
        expected.routes[8].onRefused = .hold
        expected.routes[9].staleOnError = .days(1)
        var ttl = LifetimeRule()
        (ttl.fallback, ttl.least, ttl.most, ttl.overrides) = (.minutes(5), .minutes(1), .hours(1), true)
        expected.routes[9].ttl = ttl
        expected.routes[10].onAbort = .bounds(AbortBounds())
        expected.routes[11].logout = true
        (expected.routes[13].keep, expected.routes[13].limit) = (.hours(24), .mb(50))
        expected.routes[14].order = .sender
        expected.routes[16].offlineResponse = .optimistic
        expected.routes[17].timeouts = RouteTimeouts(firstByte: .seconds(60))
        expected.routes[18].offlineResponse = .fixed(FixedReply(type: "text/html", body: "ok"))
        expected.resources = [
            Resource(
                collection: "/v1/notes", item: "/v1/notes/{id}", updatedAt: "/updatedAt",
                fields: ["/status": "server", "/title": "client", "/tags": "set", "/count": "counter", "/body": "text3"],
                delta: .init(query: "updatedAfter={cursor}", cursor: "/updatedAt", deleted: "/deletedAt"),
                sync: .init(push: "/v1/sync/push", pull: "/v1/sync/pull?since={cursor}"))
        ]
        expected.rateLimit = RateLimitRule()
        expected.resources[0].mark = "/_sync"
        expected.resources[0].success = SuccessRule(status: [200, 201, 204], pointer: "/success", equals: true)
        #expect(upstreams == [expected])
    }

    @Test func `The example file names every key there is`() throws {
        let text = try Self.uncommented()
        let names = Self.names(Configuration.section.show(try Self.decoded(text)))
        for name in names { #expect(text.contains("\(name):"), "\(name) is missing") }
    }

    private static func names(_ tree: ConfigDocument) -> Set<String> {
        switch tree {
        case .map(let members): members.reduce(into: []) { $0.formUnion(names($1.value).union([$1.name])) }
        case .list(let items): items.reduce(into: []) { $0.formUnion(names($1)) }
        default: []
        }
    }

    /// Values that need quoting, absent and present optionals, and user-defined categories.
    static let texts = [
        "",
        "categories: { mine: { ttl: 1500ms, share: 1%, max_object: 1 KiB, min_uses: 3 }, assets: { max_object: null } }",
        "upstreams: [{ name: \"1.2\", origin: \"http://[::1]:8080\", gateway: \"[::1]:9\", identity: \"header:X-Key\", via: \"socks5h://p:1\" }]",
        "upstreams: [{ name: \"null\", origin: https://a, probe: { path: \"/a?b:c\" }, identity: cookie:sid, tls: { min_version: 1.3 } }]",
        "via: [{ hosts: [\"*\"], url: \"http://a:1\", weight: 2, choose: weight, others: [{ url: \"socks5h://b:1\", weight: 3 }] }]",
        "upstreams: [{ name: a, origin: https://a:444/api/v2/, gateway: \"127.0.0.1:9\" }]",
        "upstreams: [{ name: yes, origin: https://a, tls: { ca_file: \"/ü: #\\\"x\", client_cert: /c, client_key: /k }, order: global }]",
        "upstreams: [{ name: a, origin: https://a, queue: { repeats: each }, routes: [{ match: /a, offline_response: { body: \"a: 1\" } }] }]",
        "upstreams: [{ name: a, origin: https://a, on_abort: never, routes: [{ match: /a, on_abort: { finish_above: 50% } }] }]",
        "upstreams: [{ name: a, origin: https://a, routes: [{ match: /a, offline_response: accepted }, { match: /b, offline_response: null }] }]",
        "proxy: { allow: [10.0.0.0/8, \"fe80::/10\"], no_proxy: [localhost, \"*.internal\"], listen: \"[::]:1\" }",
        "cleanup: { interval: forever, vacuum_when_free: 0% }",
    ]

    @Test(arguments: texts)
    func `What is shown as YAML reads back the same`(yaml: String) throws {
        let configuration = try Self.decoded(yaml)
        #expect(try Self.decoded(Configuration.section.show(configuration).yaml()) == configuration)
    }

    @Test(arguments: texts)
    func `What is shown as JSON reads back the same, JSON being YAML`(yaml: String) throws {
        let configuration = try Self.decoded(yaml)
        let json = Configuration.section.show(configuration).json()
        #expect(try Self.decoded(json) == configuration)
        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(json.utf8)) }
    }

    @Test func `What is shown says where each value was given, and nothing of a default`() throws {
        let loaded = try ConfigurationSources(
            environment: ["HOME": "/~", "ROCKPOOL_STORAGE_CACHE_LIMIT": "1 GB"],
            flags: ["proxy.listen": ("--proxy-listen", "127.0.0.1:0")]
        ).load(
            yaml: """
                proxy: { listen: "127.0.0.1:1", allow: [10.0.0.0/8] }
                categories:
                  mine:
                    ttl: 1h
                upstreams:
                  - name: one
                    origin: https://a
                    routes:
                      - match: /x/**
                  - origin: https://b
                    name: two
                """, named: "r.yaml")
        let lines = try Configuration.section.show(loaded.configuration).yaml { loaded.places[$0.text]?.description }
            .split(separator: "\n").map(String.init)
        let noted = lines.filter { $0.contains("  # ") }
        #expect(
            noted == [
                "  listen: 127.0.0.1:0  # --proxy-listen", "  allow: [10.0.0.0/8]  # r.yaml:1",
                "  cache_limit: 1 GB  # ROCKPOOL_STORAGE_CACHE_LIMIT", "    ttl: 1h  # r.yaml:4", "  - name: one  # r.yaml:6",
                "    origin: https://a  # r.yaml:7", "      - match: /x/**  # r.yaml:9", "  - name: two  # r.yaml:11",
                "    origin: https://b  # r.yaml:10",
            ])
        #expect(lines.contains("  pin_cap: 25%"))
    }

    @Test func `The whole example reads back the same`() throws {
        let configuration = try Self.decoded(Self.uncommented())
        #expect(try Self.decoded(Configuration.section.show(configuration).yaml()) == configuration)
    }

    @Test func `The schema knows every key that is shown, and no other is allowed`() throws {
        func check(_ shown: ConfigDocument, against schema: ConfigDocument, at path: String) {
            switch shown {
            case .map(let members):
                let object =
                    schema["properties"] == nil && schema["additionalProperties"] == nil ? Self.alternative("properties", schema) : schema
                for member in members {
                    let inner = object?["properties"]?[member.name] ?? object?["additionalProperties"]
                    guard let inner, inner != .bool(false) else {
                        Issue.record("\(path).\(member.name) is not in the schema")
                        continue
                    }
                    check(member.value, against: inner, at: "\(path).\(member.name)")
                }
            case .list(let items):
                guard let inner = Self.alternative("items", schema)?["items"] else { return #expect(Bool(false), "\(path) is no list") }
                for item in items { check(item, against: inner, at: path) }
            default: break
            }
        }
        let schema = Configuration.section.schema
        check(Configuration.section.show(try Self.decoded(Self.uncommented())), against: schema, at: "")
        #expect(schema["additionalProperties"] == .bool(false))
        #expect(Upstream.section.schema["required"] == .list([.text("name"), .text("origin")]))
        #expect(Upstream.section.schema["properties"]?["order"] == .map([.init("enum", .list([.text("entity"), .text("global")]))]))
    }

    /// Returns the alternative of `anyOf` that has this member.
    private static func alternative(_ name: String, _ schema: ConfigDocument) -> ConfigDocument? {
        guard case .list(let choices)? = schema["anyOf"] else { return nil }
        return choices.first { $0[name] != nil }
    }

    @Test func `JSON escapes what it must`() {
        let tree = ConfigDocument.map([
            .init("a\"\\", .list([.text("\n\u{1}"), .int(-1), .null, .bool(true)])), .init("b", .map([])), .init("c", .list([])),
        ])
        #expect(
            tree.json() == """
                {
                  "a\\"\\\\": [
                    "\\n\\u0001",
                    -1,
                    null,
                    true
                  ],
                  "b": {},
                  "c": []
                }
                """)
    }
}
