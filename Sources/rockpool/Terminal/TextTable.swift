// A table for a terminal: columns as wide as needed; the widest are cut with "…" at the terminal's width.

/// Rows with column titles; without any title, only rows.
struct TextTable: Sendable {
    struct Column: Sendable {
        var title: String
        var isNumber = false
        /// True if the column is never cut, because the next step needs it.
        var isKept = false

        static func text(_ title: String) -> Column { Column(title: title) }
        static func id(_ title: String) -> Column { Column(title: title, isKept: true) }
        static func number(_ title: String) -> Column { Column(title: title, isNumber: true) }
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

    /// The lines of the table, fitted to the display.
    func lines(on display: Display) -> [String] {
        let widths = widths(within: display.width)
        var lines: [String] = []
        if columns.contains(where: { !$0.title.isEmpty }) {
            lines.append(line(columns.map { Cell($0.title, .heading) }, widths: widths, on: display))
        }
        return lines + rows.map { line($0, widths: widths, on: display) }
    }

    private static let gap = 2
    /// The minimum width to which a column is cut.
    private static let least = 6

    private func widths(within width: Int?) -> [Int] {
        var widths = columns.indices.map { column in
            rows.reduce(columns[column].title.count) { max($0, column < $1.count ? $1[column].text.count : 0) }
        }
        guard let width else { return widths }
        var excess = widths.reduce(0, +) + Self.gap * max(0, columns.count - 1) - width
        let cuttable = widths.indices.filter { !columns[$0].isKept }
        while excess > 0, let widest = cuttable.max(by: { widths[$0] < widths[$1] }), widths[widest] > Self.least {
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }

    private func line(_ cells: [Cell], widths: [Int], on display: Display) -> String {
        let parts = zip(cells, widths).enumerated().map { index, part in
            let (cell, width) = part
            let text = cell.text.count > width ? cell.text.prefix(max(0, width - 1)) + "…" : cell.text
            let padding = String(repeating: " ", count: max(0, width - text.count))
            let shown = display.hasColour ? cell.colour?.painted(text) ?? text : text
            return columns[index].isNumber ? padding + shown : index == cells.count - 1 ? shown : shown + padding
        }
        var line = parts.joined(separator: String(repeating: " ", count: Self.gap))
        while line.last == " " { line.removeLast() }
        return line
    }
}
