// A table for a terminal: where it is too narrow, the widest columns move to lines of their own; nothing is cut.

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
