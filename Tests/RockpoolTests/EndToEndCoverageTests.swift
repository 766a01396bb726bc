// Every command is run by at least one end-to-end test: the test searches the end-to-end sources for the name of each command.
import ArgumentParser
import Foundation
import Testing

@testable import rockpool

@Suite struct EndToEndCoverageTests {
    @Test func everyCommandIsRunByATestEndToEnd() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(path: "EndToEndTests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
        let text = try files.filter { $0.pathExtension == "swift" }.map { try String(contentsOf: $0, encoding: .utf8) }.joined()
        // `demo` takes about 15 seconds and runs in CI as `make demo`.
        let names = Self.commands(of: Rockpool.self).filter { $0 != ["demo"] }
        #expect(names.count > 30)
        let missing = names.filter { path in
            let quoted = path.map { "\"\($0)\"" }.joined(separator: ", ")
            let called = path.count == 2 ? "\(path[0])(\"\(path[1])\"" : quoted
            return !text.contains(quoted) && !text.contains(called)
        }
        #expect(missing == [])
    }

    /// Returns the words of each command that performs an action; the word of a default subcommand is omitted.
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
