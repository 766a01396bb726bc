// docs/reference/cli.md has a section for every command with all its options, and lists every exit status.
import ArgumentParser
import Testing

@testable import rockpool

@Suite struct CommandReferenceTests {
    private let page: ReferencePage

    init() throws { page = try ReferencePage("cli") }

    /// The sections of the commands, keyed by heading.
    private var sections: [String: ReferencePage.Section] {
        let behind = page.sections.drop { $0.heading != "Commands" || $0.level != 2 }.dropFirst()
        return Dictionary(behind.map { ($0.heading, $0) }) { first, _ in first }
    }

    @Test func everyCommandHasASectionAndEverySectionIsOfACommand() {
        let names = Set(Self.commands(of: Rockpool.self).map(\.name))
        #expect(names.count > 40)
        #expect(names.symmetricDifference(sections.keys).sorted() == [])
    }

    @Test func everyOptionOfEveryCommandIsInItsSection() {
        for (name, type) in Self.commands(of: Rockpool.self) {
            let help = Rockpool.helpMessage(for: type, columns: 400).split(separator: "\n")
            let options = Set(help.compactMap { $0.firstMatch(of: /^ {2}(?:-[a-z], )?(--[a-z][a-z-]*)/).map { String($0.1) } })
            #expect(Self.options(in: sections[name]) == options.subtracting(["--help", "--version"]), "\(name)")
        }
    }

    @Test func everyExitStatusIsInTheTable() throws {
        let table = try #require(page.tables(of: "status").first)
        let statuses = (Int32(0)...255).filter { rockpool.ExitStatus(rawValue: $0) != nil }
        #expect(table.rows.compactMap { $0.first?.codes.first } == statuses.map { "\($0)" })
    }

    /// Returns the options in the tables of a section, and those named in its line of common options.
    private static func options(in section: ReferencePage.Section?) -> Set<String> {
        guard let section else { return [] }
        let own = section.tables.filter { $0.columns.first == "option" }.flatMap(\.rows).flatMap { $0.first?.codes ?? [] }
        let common = section.lines.filter { $0.hasPrefix("Common options:") }.flatMap(\.codes)
        return Set((own + common).filter { $0.hasPrefix("--") }.map { String($0.prefix { $0 != " " }) })
    }

    /// Returns every command below `type` with the words of its command line.
    private static func commands(
        of type: any ParsableCommand.Type, below path: [String] = []
    ) -> [(name: String, type: any ParsableCommand.Type)] {
        type.configuration.subcommands.flatMap { inner -> [(name: String, type: any ParsableCommand.Type)] in
            let words = path + [inner.configuration.commandName ?? "\(inner)".lowercased()]
            return [(name: words.joined(separator: " "), type: inner)] + commands(of: inner, below: words)
        }
    }
}
