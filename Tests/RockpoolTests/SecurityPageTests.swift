// Every promise of SECURITY.md names at least one test, and the named tests exist.
import FoundationEssentials
import Testing

@Suite struct SecurityPageTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(of path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test func everyPromiseNamesATestThatExists() throws {
        let page = try Self.text(of: "SECURITY.md")
        let section = try #require(page.split(separator: "## What is promised, and the tests\n").last)
        let promises = try #require(section.split(separator: "\n## ").first).split(separator: "\n- ").dropFirst()
        #expect(promises.count > 20)
        for promise in promises {
            var named = 0
            for match in promise.matches(of: /`(Tests\/[A-Za-z0-9\/]+\.swift)` ([A-Za-z0-9]+)/) {
                let source = try Self.text(of: String(match.output.1))
                #expect(source.contains("func \(match.output.2)("), "\(match.output.1) has no test \(match.output.2)")
                #expect(source.contains("@Test"))
                named += 1
            }
            #expect(named > 0, "the promise names no test: \(promise)")
        }
    }
}
