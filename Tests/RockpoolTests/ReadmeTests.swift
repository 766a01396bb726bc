// The pages of the documentation agree with the code, and their links lead to existing pages.
import FoundationEssentials
import RockpoolCore
import Testing

@Suite struct ReadmeTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(of path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test func theTableOfStrategiesIsTheCodes() throws {
        let page = try Self.text(of: "docs/guide/conflicts.md")
        let after = try #require(page.split(separator: "<!-- strategies -->\n", maxSplits: 1).last)
        let table = try #require(after.split(separator: "<!-- /strategies -->", maxSplits: 1).first)
        #expect(String(table) == Resource.Conflict.table())
    }

    @Test func theReadmeIsShort() throws {
        #expect(try Self.text(of: "README.md").utf8.count <= 9 * 1024)
    }

    @Test(
        arguments: [
            "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/security-model.md", "docs/guide/clients.md",
            "docs/guide/https.md", "docs/guide/limits.md",
        ])
    func everyLinkLeadsToAPage(_ page: String) throws {
        let directory = Self.root.appending(path: page).deletingLastPathComponent()
        for match in try Self.text(of: page).matches(of: /\]\(([A-Za-z0-9_.\/-]+\.md)/) {
            let target = directory.appending(path: String(match.output.1))
            #expect(FileManager.default.fileExists(atPath: target.path), "\(page) links to \(match.output.1), which does not exist")
        }
    }
}
