// Reports as tables and as JSON (docs/reference/cli.md#common-options).
import Foundation

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
