// Reports as tables and as JSON. Where a terminal is too narrow, the widest columns move to lines of their own; nothing is cut
// (docs/reference/cli.md#common-options).
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

/// Rows with column titles; without any title, only rows.
struct TextTable: Sendable {
    struct Column: Sendable {
        var title: String
        var isNumber = false
        /// True if the column stays in the row on a narrow terminal.
        var isKept = false

        static func text(_ title: String) -> Column { Column(title: title) }
        static func id(_ title: String) -> Column { Column(title: title, isKept: true) }
        static func number(_ title: String) -> Column { Column(title: title, isNumber: true, isKept: true) }
    }

    struct Cell: Hashable, Sendable, ExpressibleByStringInterpolation {
        var text: String
        var colour: Colour?

        init(_ text: String, _ colour: Colour? = nil) {
            self.text = text.inOneLine
            self.colour = colour
        }

        init(stringLiteral text: String) { self.init(text) }
    }

    var columns: [Column]
    var rows: [[Cell]]

    /// Names and values, without titles.
    static func facts(_ facts: [(String, Cell)]) -> TextTable {
        TextTable(columns: [.text(""), .text("")], rows: facts.map { [Cell($0.0), $0.1] })
    }

    /// The lines of the table, fitted to the display. A word that is longer than a line stays whole.
    func lines(on display: Display) -> [String] { TableLayout(self, on: display).lines }
}

/// A table with the widths of its columns.
struct TableLayout {
    private static let gap = 2
    private static let indentation = "    "
    /// The least width of the values of facts beside their names.
    private static let leastValue = 20

    private let table: TextTable
    private let display: Display
    private let widths: [Int]
    /// The columns that are shown on lines below the row, because the row is too narrow for them; the first column on a line above it.
    private let moved: Set<Int>

    init(_ table: TextTable, on display: Display) {
        (self.table, self.display) = (table, display)
        var widths = table.columns.map(\.title.count)
        for row in table.rows {
            for (column, cell) in zip(widths.indices, row) { widths[column] = max(widths[column], cell.text.count) }
        }
        self.widths = widths
        moved = Self.moved(from: table.columns, widths: widths, within: display.width)
    }

    /// Chooses the widest columns until the rest fits; at least one column stays.
    private static func moved(from columns: [TextTable.Column], widths: [Int], within width: Int?) -> Set<Int> {
        guard let width else { return [] }
        var moved: Set<Int> = []
        var excess = widths.reduce(0, +) + gap * max(0, columns.count - 1) - width
        let movable = columns.indices.filter { !columns[$0].isKept }.sorted { widths[$0] > widths[$1] }
        for column in movable.prefix(max(0, columns.count - 1)) where excess > 0 {
            moved.insert(column)
            excess -= widths[column] + gap - (column == 0 ? indentation.count : 0)
        }
        return moved
    }

    var lines: [String] {
        guard table.columns.contains(where: { !$0.title.isEmpty }) else { return table.rows.flatMap(facts) }
        let kept = widths.indices.filter { !moved.contains($0) }
        let head = moved.contains(0) ? Self.indentation : ""
        var lines = [head + line(table.columns.map { .init($0.title, .heading) }, of: kept)]
        for row in table.rows {
            if moved.contains(0) { lines.append(shown(row[0].text, row[0].colour)) }
            lines.append(head + line(row, of: kept))
            for column in moved.sorted() where column > 0 && !["", "–"].contains(row[column].text) {
                lines += note(table.columns[column].title.lowercased(), row[column])
            }
        }
        return lines
    }

    /// A value of a moved column: its title, then the text, continued under itself.
    private func note(_ title: String, _ cell: TextTable.Cell) -> [String] {
        let head = Self.indentation + title + "  "
        return wrapped(cell.text, within: display.width.map { $0 - head.count }).enumerated().map { index, part in
            (index == 0 ? head : String(repeating: " ", count: head.count)) + shown(part, cell.colour)
        }
    }

    /// A row without titles, the last cell continued under itself.
    private func facts(_ row: [TextTable.Cell]) -> [String] {
        guard let last = row.indices.last else { return [] }
        let begin = row.indices.dropLast().map { padded(row[$0], to: widths[$0]) + String(repeating: " ", count: Self.gap) }.joined()
        let used = row.indices.dropLast().reduce(0) { $0 + widths[$1] + Self.gap }
        let room = display.width.map { max(Self.leastValue, $0 - used) }
        return wrapped(row[last].text, within: room).enumerated().map { index, part in
            ((index == 0 ? begin : String(repeating: " ", count: used)) + shown(part, row[last].colour)).withoutEndSpace
        }
    }

    private func line(_ cells: [TextTable.Cell], of kept: [Int]) -> String {
        kept.map { padded(cells[$0], to: widths[$0], right: table.columns[$0].isNumber) }
            .joined(separator: String(repeating: " ", count: Self.gap)).withoutEndSpace
    }

    private func padded(_ cell: TextTable.Cell, to width: Int, right: Bool = false) -> String {
        let padding = String(repeating: " ", count: max(0, width - cell.text.count))
        return right ? padding + shown(cell.text, cell.colour) : shown(cell.text, cell.colour) + padding
    }

    private func shown(_ text: String, _ colour: Colour?) -> String { display.hasColour ? colour?.painted(text) ?? text : text }

    /// The text in lines of at most `width` characters, broken at spaces.
    private func wrapped(_ text: String, within width: Int?) -> [String] {
        guard let width, text.count > width else { return [text] }
        var lines: [String] = []
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = last + " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}

extension String {
    fileprivate var withoutEndSpace: String {
        var text = self
        while text.last == " " { text.removeLast() }
        return text
    }
}
