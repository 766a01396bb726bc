// `rockpool config`: validates a file, shows the effective configuration, prints its schema (docs/reference/cli.md#config).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolStore

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check the configuration, show it, or describe it.",
        discussion: .examples(
            "rockpool config check rockpool.yaml",
            "rockpool config show"),
        subcommands: [Check.self, Show.self, Schema.self, Trust.self])

    /// The configuration file; the argument takes precedence over `--config`.
    struct Source: ParsableArguments {
        @Argument(help: "The file; by default that of --config.", completion: .file(extensions: ["yaml", "yml"]))
        var file: String?
        @OptionGroup var common: CommonOptions

        func load() throws -> LoadedConfiguration { try common.loadInFolder(named: file) }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Validate a configuration; each problem is one line, FILE:LINE: message.",
            discussion: .examples(
                "rockpool config check",
                "rockpool config check rockpool.yaml"))
        @OptionGroup var source: Source

        func run() throws {
            var loaded = try source.load()
            if loaded.file == nil, let service = Directories.serviceFile { loaded = try source.common.loadInFolder(named: service) }
            let configuration = loaded.configuration
            try Server.checkFiles(of: configuration)
            if source.file == nil, source.common.config == nil {
                let place = Directories.userFile(environment: ProcessInfo.processInfo.environment)
                source.common.say(
                    loaded.file.map { "checked \($0)" } ?? "there is no file, neither ./rockpool.yaml nor \(place); the defaults apply")
            }
            let count = configuration.upstreams.count
            Display.output.print("the configuration is valid: \(count.counted("upstream"))")
        }
    }

    struct Show: AsyncParsableCommand {
        /// `table`, the format for people in other commands, is YAML here.
        enum Format: String, CaseIterable, ExpressibleByArgument { case yaml, table, json }

        static let configuration = CommandConfiguration(
            abstract: "Print the effective configuration; as YAML with the source of each value.",
            discussion: .examples(
                "rockpool config show",
                "rockpool config show rockpool.yaml --format json",
                after: "Without a file it is that of the running server, if one runs, else that with which one would start."))
        @OptionGroup var source: Source
        @Option(name: .long, help: "yaml (also called table) or json.")
        var format: Format = .yaml

        func run() async throws {
            if source.file == nil, source.common.config == nil, let server = try await source.common.running() {
                return try show(server.configuration, head: "of the running server", file: server.facts.configFile)
            }
            let loaded = try source.load()
            try show(loaded.configuration, head: "Values without a source are defaults.", file: loaded.file) {
                loaded.places[$0]?.description
            }
        }

        private func show(
            _ configuration: Configuration, head: String, file: String?, source: (String) -> String? = { _ in nil }
        ) throws {
            let tree = Configuration.section.show(configuration)
            switch format {
            case .yaml, .table:
                Display.output.print(file.map { "# \($0): \(head)".inOneLine } ?? "# \(head)")
                Display.output.write(try tree.yaml { source($0.text) })
            case .json: Display.output.print(tree.json())
            }
        }
    }

    struct Trust: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let the file of a working directory decide everything, as it is now.",
            discussion: .examples(
                "rockpool config trust",
                after: """
                    serve and config read ./rockpool.yaml without being told to. Keys that run programs, name files, sockets, authorities or \
                    parents, or open the proxy to others are refused from it until you have agreed to it. A changed file needs it again.
                    """))
        @Argument(help: "The file; by default ./rockpool.yaml.", completion: .file(extensions: ["yaml", "yml"]))
        var file = "rockpool.yaml"
        @Flag(name: .long, help: "Withdraw the consent.") var revoke = false

        func run() throws {
            let environment = ProcessInfo.processInfo.environment
            let (path, book) = (URL(fileURLWithPath: file).resolvingSymlinksInPath().path, ConsentBook(environment: environment))
            if revoke {
                guard try book.remove(path) else { throw CommandFailure(.failed, "\(path) is not trusted".inOneLine) }
                return Display.output.print("\(path) is no longer trusted".inOneLine)
            }
            guard let data = FileManager.default.contents(atPath: path) else {
                throw CommandFailure(.failed, "\(path) cannot be read: \(String(cString: strerror(errno)))".inOneLine)
            }
            let request = ConsentRequest(file: path, bytes: Array(data), decisions: try decisions(in: data, at: path))
            try request.note(in: book)
            for decision in request.decisions { Display.output.print("\(decision.place): \(decision.key): \(decision.value)".inOneLine) }
            Display.output.print("\(path) is trusted, until it changes".inOneLine)
        }

        /// What the file decides. Throws if it is no valid configuration.
        private func decisions(in data: Data, at path: String) throws -> [ConsentRequest.Decision] {
            do throws(ConfigurationError) {
                let yaml = String(decoding: data, as: UTF8.self)
                _ = try ConfigurationSources(file: path, environment: [:]).load(yaml: yaml, named: path, decides: false)
                return []
            } catch {
                guard let request = error.consent else { throw error }
                return request.decisions
            }
        }
    }

    struct Schema: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the JSON Schema of the configuration, for editors.",
            discussion: .examples(
                "rockpool config schema > rockpool.schema.json"))
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
