// What a configuration file that nobody has named may decide (docs/reference/configuration.md#working-directory).
import Foundation
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct FolderConsentTests {
    private static func upstream(_ keys: String) -> String { "upstreams: [{ name: a, origin: https://a.test, \(keys) }]" }

    private func load(_ yaml: String, decides: Bool = false) throws(ConfigurationError) -> LoadedConfiguration {
        try ConfigurationSources(environment: [:]).load(yaml: yaml, named: "r.yaml", decides: decides)
    }

    @Test(arguments: [
        ("notify: [{ on: [dead], command: [/bin/sh, -c, id] }]", "notify[0].command"),
        ("notify: [{ on: [dead], webhook: { url: https://a.test/h, secret_file: s } }]", "notify[0].webhook.url"),
        ("callbacks: { origins: [https://a.test], secret_file: s }", "callbacks.origins"), ("tracing: otlp://a.test:4318", "tracing"),
        ("fleet: { parents: [http://a:7625, http://b:7625], self: http://a:7625 }", "fleet.parents"),
        ("fleet: { report: { url: https://a.test/r, site: s, secret_file: s } }", "fleet.report.url"),
        ("outbox: { store: postgresql, url: postgresql://a.test/db }", "outbox.store"),
        ("via: [{ hosts: [\"*\"], url: http://a.test:3128 }]", "via"), (upstream("via: http://a.test:3128"), "upstreams[0].via"),
        (upstream("via: { url: http://a.test:3128 }"), "upstreams[0].via"), ("storage: { state_dir: here }", "storage.state_dir"),
        ("storage: { cache_dir: ../there }", "storage.cache_dir"), ("storage: { encrypt: private, key_file: k }", "storage.key_file"),
        ("admin: { socket: ./s }", "admin.socket"), ("admin: { hosts: [evil.test] }", "admin.hosts"),
        ("admin: { socket_access: group }", "admin.socket_access"), ("proxy: { auth: { file: f } }", "proxy.auth.file"),
        ("proxy: { listen: \"0.0.0.0:7625\", allow: [0.0.0.0/0] }", "proxy.allow"),
        ("proxy: { connect_ports: [22] }", "proxy.connect_ports"),
        ("proxy: { deny_addresses: [] }", "proxy.deny_addresses"), ("proxy: { intercept: [\"*.test\"] }", "proxy.intercept"),
        ("defaults: { intercept: true }", "defaults.intercept"), (upstream("tls: { ca_file: ca.pem }"), "upstreams[0].tls.ca_file"),
        (upstream("tls: { client_cert: c, client_key: k }"), "upstreams[0].tls.client_cert"),
        (upstream("refresh: { path: /t, token_file: ~/.netrc }"), "upstreams[0].refresh.token_file"),
        (upstream("sign: { sigv4: { key_id: k, secret_file: s } }"), "upstreams[0].sign.sigv4.secret_file"),
    ])
    func aFoundFileDoesNotDecide(yaml: String, key: String) throws {
        let refusal = #expect(throws: ConfigurationError.self) { try load(yaml) }
        let request = try #require(refusal?.consent, "\(String(describing: refusal))")
        #expect(request.decisions.first?.key == key && request.decisions.first?.place == .file("r.yaml", line: 1))
        #expect(
            refusal?.problems.count == 1 && refusal?.description.contains("rockpool config trust") == true, "\(String(describing: refusal))"
        )
        #expect(throws: Never.self) { try load(yaml, decides: true) }
    }

    @Test(arguments: [
        "",
        upstream(
            "gateway: \"127.0.0.1:7630\", policy: offline-first, intercept: true, tls: { min_version: \"1.3\" }, refresh: { path: /t }"),
        "storage: { limit: 1 GB, state_dir: ~/.local/state/rockpool }", "notify: [{ on: [dead], desktop: true }]", "notify: []\nvia: []",
        "proxy: { listen: \"127.0.0.1:0\", no_proxy: [a.test], auth: null }", "network: offline\ntracing: null",
        "outbox: { store: sqlite }",
        "categories: { critical: { ttl: 1h } }\ncleanup: { interval: 1h }", "defaults: { intercept: false, queue_writes: true }",
    ])
    func theRestNeedsNothing(yaml: String) throws {
        #expect(throws: Never.self) { try load(yaml) }
    }

    /// Flags and variables are the user's; the file beside them decides nothing then.
    @Test func variablesNeedNoConsent() throws {
        var sources = ConfigurationSources(environment: ["ROCKPOOL_STORAGE_STATE_DIR": "/tmp/s"])
        sources.flags["admin.socket"] = ("--socket", "/tmp/x")
        let yaml = "storage: { state_dir: here }\nadmin: { socket: there }"
        let loaded = try sources.load(yaml: yaml, named: "r.yaml", decides: false)
        #expect(loaded.configuration.storage.stateDir == "/tmp/s" && loaded.configuration.admin.socket == "/tmp/x")
    }
}
