// What commands share: the configuration that finds the server, and how an answer is printed (contract §1, §6).
import ArgumentParser
import Foundation
import RockpoolCore

/// `--config`, of every command.
struct CommonOptions: ParsableArguments {
    @Option(
        name: .long,
        help: "The configuration file. Without it ~/.config/rockpool/rockpool.yaml is read if it is there, else the defaults serve.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    /// Reads the configuration; warnings go to stderr. `flags` are the command's own, by the key they stand for.
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

    /// The id of an operation or a conflict: an empty one would be the list of all.
    static func id(_ text: String) throws -> String {
        guard !text.isEmpty else { throw ValidationError("the id is empty") }
        return text
    }

    /// A caller of the server this configuration is for.
    func client() throws -> AdminClient {
        AdminClient(stateDirectory: try load().configuration.storage.stateDir)
    }
}

/// How an answer is printed.
enum Format: String, CaseIterable, ExpressibleByArgument {
    case table, json
}

/// `--config` and `--format`, of every command that reads.
struct ReadingOptions: ParsableArguments {
    @OptionGroup var common: CommonOptions
    @Option(name: .long, help: "table for people, json for programs.")
    var format: Format = .table

    /// Prints the server's answer: as it came, or as tables.
    func print<Report: TabularReport>(_ reply: AdminReply, as type: Report.Type) throws {
        switch format {
        case .json: Display.output.write(reply.body.withLineEnd)
        case .table: Display.output.print(try reply.decoded(as: type))
        }
    }
}

/// A report that people can read.
protocol TabularReport: Decodable {
    /// Printed one below the other, a blank line between them.
    var tables: [TextTable] { get }
    /// Printed when there is nothing to list.
    var emptyNote: String? { get }
}

extension TabularReport where Self: Encodable {
    /// As `--format json` gives what was made here and not by a server.
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
    /// The same bytes for the same value each time (contract §1: `json` is stable).
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
    /// The text with a line break at its end.
    var withLineEnd: String {
        let text = String(decoding: self, as: UTF8.self)
        return text.hasSuffix("\n") ? text : text + "\n"
    }
}
