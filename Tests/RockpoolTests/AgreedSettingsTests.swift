// The settings that the nodes of a fleet compare (docs/fleet.md#settings).
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct AgreedSettingsTests {
    private func settings(_ yaml: String) throws -> AgreedSettings {
        let start = "upstreams:\n  - name: notes\n    origin: https://api.example.com\n"
        return AgreedSettings(of: try ConfigurationSources(environment: [:]).load(yaml: start + yaml, named: "f").configuration)
    }

    @Test(arguments: [
        ("", []), ("    gateway: 127.0.0.1:7630\n    timeouts: { connect: 1s }\n", []), ("log: { access: common }\n", []),
        ("    order: global\n", ["upstreams.notes.order"]),
        ("    idempotency: { header: X-Key, ttl: 1h }\n", ["upstreams.notes.idempotency.header", "upstreams.notes.idempotency.ttl"]),
        ("cleanup: { failed_after: 1d }\nsecrets: [sig]\n", ["cleanup.failed_after", "secrets"]),
        ("  - name: more\n    origin: https://more.example.com\n", ["upstreams.more"]),
    ])
    func whatDecidesAboutWritesIsCompared(yaml: String, keys: [String]) throws {
        let (one, other) = (try settings(""), try settings(yaml))
        #expect(one.differences(from: other) == keys && other.differences(from: one) == keys)
        #expect((one == other) == keys.isEmpty && AgreedSettings(text: other.text) == other)
    }

    @Test func aRouteMoreIsNamed() throws {
        let route = "    routes:\n      - { match: /v1/a, queue: never }\n"
        let (one, two) = (try settings(route), try settings(route + "      - { match: /v1/b, queue: never }\n"))
        let keys = one.differences(from: two)
        #expect(keys.contains("upstreams.notes.routes") && keys.contains("upstreams.notes.routes[1].match"), "\(keys)")
        #expect(keys.allSatisfy { $0 == "upstreams.notes.routes" || $0.hasPrefix("upstreams.notes.routes[1]") }, "\(keys)")
    }

    /// What other nodes read holds no secret of this one.
    @Test func noSecretIsTold() throws {
        let text = try settings("    via: { url: \"http://proxy:3128\", auth: basic, user: me, password_file: /p }\n").text
        #expect(!text.contains("proxy") && !text.contains("/p"), "\(text)")
    }
}
