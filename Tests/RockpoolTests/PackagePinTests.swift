// The versions of all packages, those that packages need included, are part of the repository (Package.resolved).
import FoundationEssentials
import RockpoolCore
import Testing

@Suite struct PackagePinTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(of path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// A clone builds what was tested: every package has one version and the hash of its commit, none a branch.
    @Test func everyPackageIsPinned() throws {
        let resolved = try JSONValue.parse(Array(Self.text(of: "Package.resolved").utf8))
        let pins = try #require(resolved["pins"]?.array)
        for pin in pins {
            let state = try #require(pin["state"])
            #expect(state["version"]?.string != nil && state["branch"] == nil, "\(pin)")
            #expect(state["revision"]?.string?.utf8.count == 40, "\(pin)")
        }
        let pinned = Set(pins.compactMap { $0["location"]?.string?.replacing(".git", with: "") })
        let manifest = try #require(try Self.text(of: "Package.swift").split(separator: "let package = Package(").last)
        let declared = try #require(manifest.split(separator: "\n    targets: [").first).matches(of: /url: "([^"]+)"/)
        #expect(declared.count > 15)
        for match in declared {
            #expect(pinned.contains(String(match.output.1).replacing(".git", with: "")), "\(match.output.1) has no pin")
        }
        #expect(try !Self.text(of: ".gitignore").contains("Package.resolved"))
    }
}
