// No command without a test that runs it: the names of all of them are looked for in the tests that go end to end.
import ArgumentParser
import Foundation
import Testing

@testable import rockpool

@Suite struct EndToEndCoverageTests {
    @Test func everyCommandIsRunByATestEndToEnd() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(path: "EndToEndTests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        let text = try files.filter { $0.pathExtension == "swift" }.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
        // `demo` takes a quarter of a minute: `make demo` runs it in CI.
        let names = Self.commands(of: Rockpool.self).filter { $0 != ["demo"] }
        #expect(names.count > 30)
        let missing = names.filter { path in
            let quoted = path.map { "\"\($0)\"" }.joined(separator: ", ")
            let called = path.count == 2 ? "\(path[0])(\"\(path[1])\"" : quoted
            return !text.contains(quoted) && !text.contains(called)
        }
        #expect(missing == [])
    }

    /// The words of each command that does something; what goes without saying is left out.
    private static func commands(of type: any ParsableCommand.Type) -> [[String]] {
        let configuration = type.configuration
        return configuration.subcommands.flatMap { inner -> [[String]] in
            let name = inner.configuration.commandName ?? "\(inner)".lowercased()
            let below = commands(of: inner).map { [name] + $0 }
            if below.isEmpty { return inner == configuration.defaultSubcommand ? [] : [[name]] }
            return below + (inner.configuration.defaultSubcommand == nil ? [] : [[name]])
        }
    }
}
