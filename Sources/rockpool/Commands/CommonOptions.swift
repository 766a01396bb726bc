// Options shared by the commands: the configuration that locates the server, and the output format (docs/reference/cli.md#common-options).
import ArgumentParser
import Foundation
import RockpoolCore

/// `--config`, an option of every command.
struct CommonOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file. By default ~/.config/rockpool/rockpool.yaml if it exists, else the defaults are used.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// Reads the configuration; warnings go to stderr. `flags` are the command's own options, by configuration key.
    func load(flags: [String: (flag: String, text: String)] = [:]) throws -> LoadedConfiguration {
        try Self.load(file: config, flags: flags)
    }

    static func load(file: String?, flags: [String: (flag: String, text: String)] = [:]) throws -> LoadedConfiguration {
        let environment = ProcessInfo.processInfo.environment
        let file = file ?? Directories.defaultFile(environment: environment)
        let loaded = try ConfigurationSources(file: file, environment: environment, flags: flags).load()
        for warning in loaded.warnings { Display.error.print("rockpool: warning: \(warning)") }
        return loaded
    }

    /// Checks the id of an operation or a conflict: an empty id would address the list.
    static func id(_ text: String) throws -> String {
        guard !text.isEmpty else { throw ValidationError("the id is empty") }
        return text
    }

    /// A client of the server that uses this configuration.
    func client() throws -> AdminClient {
        AdminClient(stateDirectory: try load().configuration.storage.stateDir)
    }
}

/// The output format of a reply.
enum Format: String, CaseIterable, ExpressibleByArgument {
    case table, json
}

/// `--config` and `--format`, options of every reading command.
struct ReadingOptions: ParsableArguments {
    @OptionGroup var common: CommonOptions
    @Option(name: .long, help: "table for people, json for programs.")
    var format: Format = .table

    /// Prints the server's reply, unchanged or as tables.
    func print<Report: TabularReport>(_ reply: AdminReply, as type: Report.Type) throws {
        switch format {
        case .json: Display.output.write(reply.body.withLineEnd)
        case .table: Display.output.print(try reply.decoded(as: type))
        }
    }
}

/// A report with a form for people.
protocol TabularReport: Decodable {
    /// Tables, printed with a blank line between them.
    var tables: [TextTable] { get }
    /// Printed if there is nothing to list.
    var emptyNote: String? { get }
}

extension TabularReport where Self: Encodable {
    /// The output of `--format json` for a report made by the command itself.
    var encoded: Data {
        get throws {
            let encoder = JSONEncoder.stable
            encoder.outputFormatting.insert(.prettyPrinted)
            return try encoder.encode(self)
        }
    }
}

extension TabularReport {
    var emptyNote: String? { nil }
}

extension JSONEncoder {
    /// Encodes the same value to the same bytes each time (docs/reference/cli.md#common-options: `json` is stable).
    static var stable: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}

extension Display {
    func print(_ report: some TabularReport) { print(report.tables, emptyNote: report.emptyNote) }

    func print(_ tables: [TextTable], emptyNote: String? = nil) {
        let blocks = tables.filter { !$0.rows.isEmpty }.map { $0.lines(on: self).joined(separator: "\n") }
        if blocks.isEmpty, let emptyNote { print(emptyNote) }
        if !blocks.isEmpty { print(blocks.joined(separator: "\n\n")) }
    }
}

extension Data {
    /// The text, with a line break at its end.
    var withLineEnd: String {
        let text = String(decoding: self, as: UTF8.self)
        return text.hasSuffix("\n") ? text : text + "\n"
    }
}
