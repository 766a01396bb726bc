// The colours of the terminal.

/// The colours used for meaning.
enum Colour: String, Hashable, Sendable {
    case good = "32"
    case warning = "33"
    case bad = "31"
    case heading = "1"

    func painted(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}
