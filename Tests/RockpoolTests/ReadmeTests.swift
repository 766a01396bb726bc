// What the README says of the code is what the code does.
import FoundationEssentials
import RockpoolCore
import Testing

@Suite struct ReadmeTests {
    @Test func theTableOfStrategiesIsTheCodes() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let after = try #require(readme.split(separator: "<!-- strategies -->\n", maxSplits: 1).last)
        let table = try #require(after.split(separator: "<!-- /strategies -->", maxSplits: 1).first)
        #expect(String(table) == Resource.Conflict.table())
    }
}
