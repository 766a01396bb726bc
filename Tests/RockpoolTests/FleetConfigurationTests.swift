// The keys of `fleet`, and what is refused (docs/reference/configuration.md#fleet).
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct FleetConfigurationTests {
    @Test func itIsReadAndShown() throws {
        let configuration = try ConfigurationSources(environment: ["HOME": "/home/me"]).load(
            yaml: """
                fleet:
                  parents: ["http://a:7625", "https://b:7625"]
                  self: "https://b:7625"
                  report: { url: "http://office:7640/v1/reports", site: shop-1, secret_file: /s, every: 1m }
                """, named: "r.yaml"
        ).configuration
        #expect(configuration.fleet.parents == ["http://a:7625", "https://b:7625"] && configuration.fleet.own == "https://b:7625")
        #expect(configuration.fleet.report?.site == "shop-1" && configuration.fleet.report?.every == .minutes(1))
        #expect(ConfigurationErrorTests.problems(Configuration.section.show(configuration).json()) == [])
    }

    @Test(arguments: [
        ("parents: [\"http://a:1\", \"http://b:1\"]", "fleet.self: is missing"),
        ("parents: [\"http://a:1\", \"http://a:1\"], self: \"http://a:1\"", "fleet.parents: names a gateway twice"),
        ("parents: [\"http://a:1\", \"http://b:1\"], self: \"http://c:1\"", "fleet.self: http://c:1 is none of the parents"),
        ("parents: [\"socks5://a:1\"]", "fleet.parents[0]"), ("parents: [\"http://a\"]", "fleet.parents[0]"),
        ("report: { url: \"http://a/\", site: \"../x\", secret_file: /s }", "fleet.report.site"),
        ("report: { url: \"http://a/\", secret_file: /s }", "site"),
    ])
    func whatCannotWorkIsRefused(text: String, expected: String) {
        let problems = ConfigurationErrorTests.problems("fleet: { \(text) }")
        #expect(problems.count == 1 && problems[0].contains(expected), "\(problems)")
    }
}
