// An upstream is added to files of every form, and taken from them; all other lines stay (docs/reference/cli.md#add).
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

    /// What `rockpool add` writes of an API without resources ends with comments.
    private static let commented = """
        upstreams:
          # the first
          - name: a
            origin: "https://a.example.com"
            # No resources were found
            # resources:
        """

    @Test(arguments: ["\n", "\n\n  # - name: later\n", "\nlog: { access: \"off\" }\n"])
    func commentsStayWithTheUpstreamTheyAreAbout(rest: String) throws {
        let edited = try edited(Self.commented + rest)
        #expect(edited.hasPrefix(Self.commented + "\n  - name: \"new\"\n"), "\(edited)")
        let back = try ConfigurationEdit(text: edited, named: "rockpool.yaml").removing("new")
        #expect(back.text == Self.commented + rest)
        #expect(back.lines == entry.map { "  " + $0 })
        let other = try ConfigurationEdit(text: edited, named: "rockpool.yaml").removing("a")
        #expect(!other.text.contains("the first") && !other.text.contains("No resources") && other.text.contains(entry[1]))
        #expect(other.lines.count == 5)
    }

    @Test(arguments: [
        "upstreams:\n  \(before)\n", "upstreams:\n\(before)\nlog: { access: \"off\" }\n", "upstreams:\r\n  \(before)\r\n",
        "upstreams:\n-\n  name: a\n  origin: https://a.example.com\n  routes:\n  - { match: /x, store: never }\n\n# end\n",
    ])
    func whatIsAddedIsRemovedAgain(text: String) throws {
        let edited = try edited(text)
        try #expect(ConfigurationEdit(text: edited, named: "f").removing("new").text == text)
        let other = try ConfigurationEdit(text: edited, named: "f").removing("a").text
        let read = try ConfigurationSources(environment: [:]).load(yaml: other, named: "f").configuration
        #expect(read.upstreams.map(\.name) == ["new"])
        let none = try ConfigurationEdit(text: text, named: "f").removing("a").text
        #expect(try ConfigurationSources(environment: [:]).load(yaml: none, named: "f").configuration.upstreams.isEmpty)
    }

    @Test(arguments: [
        "upstreams: [{ name: a, origin: \"https://a.example.com\" }]\n",
        "{ upstreams: [{ name: a, origin: \"https://a.example.com\" }] }\n",
        "upstreams:\n  - &first { name: a, origin: \"https://a.example.com\" }\n  - { <<: *first, name: b, origin: \"https://b.example.com\" }\n",
    ])
    func anUpstreamWithoutLinesOfItsOwnStays(text: String) throws {
        #expect(throws: (any Error).self) { try ConfigurationEdit(text: text, named: "f").removing("a") }
    }
}
