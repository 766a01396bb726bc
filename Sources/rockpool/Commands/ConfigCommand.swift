// `rockpool config`: validate a file, show what is in effect, describe what may stand in it (contract §1).
import ArgumentParser
import Foundation
import RockpoolCore

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check the configuration, show it, or describe it.",
        subcommands: [Check.self, Show.self, Schema.self])

    /// A file as argument goes before `--config`.
    struct Source: ParsableArguments {
        @Argument(help: "The file; without it the one of --config.", completion: .file(extensions: ["yaml", "yml"]))
        var file: String?
        @OptionGroup var common: CommonOptions

        func load() throws -> LoadedConfiguration { try CommonOptions.load(file: file ?? common.config) }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Validate; every problem is one line FILE:LINE: what is wrong.")
        @OptionGroup var source: Source

        func run() throws {
            let configuration = try source.load().configuration
            try Server.checkFiles(of: configuration)
            let count = configuration.upstreams.count
            Display.output.print("the configuration is valid: \(count) \(count == 1 ? "upstream" : "upstreams")")
        }
    }

    struct Show: ParsableCommand {
        /// `table`, the word of other commands for people, is YAML here.
        enum Format: String, CaseIterable, ExpressibleByArgument { case yaml, table, json }

        static let configuration = CommandConfiguration(
            abstract: "Print the configuration in effect; as YAML with where each value was given.")
        @OptionGroup var source: Source
        @Option(name: .long, help: "yaml (also called table) or json.")
        var format: Format = .yaml

        func run() throws {
            let loaded = try source.load()
            let tree = Configuration.section.show(loaded.configuration)
            switch format {
            case .yaml, .table:
                Display.output.print("# What has no source behind it is a default.")
                Display.output.write(try tree.yaml { loaded.places[$0.text]?.description })
            case .json: Display.output.print(tree.json())
            }
        }
    }

    struct Schema: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the JSON Schema of the configuration, for editors.")
        @OptionGroup var common: CommonOptions

        func run() throws {
            let head = Tree.map([
                .init("$schema", .text("https://json-schema.org/draft/2020-12/schema")), .init("title", .text("Rockpool configuration")),
            ])
            guard case .map(let members) = Configuration.section.schema else { return }
            Display.output.print(members.reduce(head) { $0.adding($1.name, $1.value) }.json())
        }
    }
}
