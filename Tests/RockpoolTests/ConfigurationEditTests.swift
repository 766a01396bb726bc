// An upstream is added to files of every form; all other lines stay (docs/reference/cli.md#add).
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct ConfigurationEditTests {
    private let entry = ["- name: \"new\"", "  origin: \"https://new.example.com\"", "  gateway: \"127.0.0.1:7640\"  # a comment"]
    private static let before = "- { name: a, origin: \"https://a.example.com\" }"

    private func edited(_ text: String) throws -> String {
        try ConfigurationEdit(text: text, named: "rockpool.yaml").adding(entry)
    }

    @Test(arguments: [
        "", "\n", "# only words\n", "log: { access: \"off\" }\n", "log: { access: \"off\" }", "upstreams: []\n",
        "upstreams: []   # none yet\nlog: { access: \"off\" }\n", "upstreams:\n", "upstreams: null\ncleanup: { interval: 1h }\n",
        "upstreams:\n  \(before)\n", "upstreams:\n\(before)\nlog: { access: \"off\" }\n",
        "upstreams:\n  # first\n  \(before)\n\n  # last\n",
        "upstreams:\n  - name: a\n    origin: https://a.example.com\n    routes:\n      - { match: /x, store: never }\n# end\nlog: { access: \"off\" }\n",
        "upstreams:\r\n  \(before)\r\n",
    ])
    func theFileMeansWhatItDidAndTheUpstream(text: String) throws {
        let edited = try edited(text)
        let sources = ConfigurationSources(environment: [:])
        let (old, new) = (try sources.load(yaml: text, named: "f").configuration, try sources.load(yaml: edited, named: "f").configuration)
        #expect(new.upstreams.map(\.name) == old.upstreams.map(\.name) + ["new"], "\(edited)")
        #expect(new.upstreams.last?.gateway == "127.0.0.1:7640", "\(edited)")
        let kept = text.split { $0 == "\n" || $0 == "\r\n" }.filter { !$0.hasPrefix("upstreams:") }
        #expect(kept.allSatisfy { edited.contains($0) } && edited.contains("# a comment"), "\(edited)")
        // Once more, after what was written.
        let again = try sources.load(
            yaml: try self.edited(edited.replacing("new", with: "newer").replacing("7640", with: "7641")), named: "f"
        ).configuration
        #expect(again.upstreams.count == old.upstreams.count + 2)
    }

    @Test(arguments: ["upstreams: [{ name: a, origin: \"https://a.example.com\" }]\n", "{ upstreams: [] }\n", "upstreams: [\n]\n"])
    func aFileWithoutAPlaceForLinesIsLeftAlone(text: String) throws {
        #expect(throws: (any Error).self) { try edited(text) }
    }
}
