// Options of the reading commands (docs/reference/cli.md#common-options).
import ArgumentParser
import Foundation

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
