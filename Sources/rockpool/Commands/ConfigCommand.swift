// `rockpool config`: validates a file, shows the effective configuration, prints its schema (docs/reference/cli.md#config).
import ArgumentParser
import Foundation
import RockpoolCore

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check the configuration, show it, or describe it.",
        subcommands: [Check.self, Show.self, Schema.self])

    /// The configuration file; the argument takes precedence over `--config`.
    struct Source: ParsableArguments {
        @Argument(help: "The file; by default that of --config.", completion: .file(extensions: ["yaml", "yml"]))
        var file: String?
        @OptionGroup var common: CommonOptions

        func load() throws -> LoadedConfiguration { try CommonOptions.load(file: file ?? common.config) }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Validate a configuration; each problem is one line, FILE:LINE: message.")
        @OptionGroup var source: Source

        func run() throws {
            let configuration = try source.load().configuration
            try Server.checkFiles(of: configuration)
            let count = configuration.upstreams.count
            Display.output.print("the configuration is valid: \(count) \(count == 1 ? "upstream" : "upstreams")")
        }
    }

    struct Show: ParsableCommand {
        /// `table`, the format for people in other commands, is YAML here.
        enum Format: String, CaseIterable, ExpressibleByArgument { case yaml, table, json }

        static let configuration = CommandConfiguration(
            abstract: "Print the effective configuration; as YAML with the source of each value.")
        @OptionGroup var source: Source
        @Option(name: .long, help: "yaml (also called table) or json.")
        var format: Format = .yaml

        func run() throws {
            let loaded = try source.load()
            let tree = Configuration.section.show(loaded.configuration)
            switch format {
            case .yaml, .table:
                Display.output.print("# Values without a source are defaults.")
                Display.output.write(try tree.yaml { loaded.places[$0.text]?.description })
            case .json: Display.output.print(tree.json())
            }
        }
    }

    struct Schema: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the JSON Schema of the configuration, for editors.")
        @OptionGroup var common: CommonOptions

        func run() throws {
            let head = ConfigDocument.map([
                .init("$schema", .text("https://json-schema.org/draft/2020-12/schema")), .init("title", .text("Rockpool configuration")),
            ])
            guard case .map(let members) = Configuration.section.schema else { return }
            Display.output.print(members.reduce(head) { $0.adding($1.name, value: $1.value) }.json())
        }
    }
}
