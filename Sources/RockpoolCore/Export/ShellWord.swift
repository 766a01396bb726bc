// Any bytes as one word of a POSIX shell, safe to paste into a terminal (POSIX.1-2024, Shell Command Language §2.2.2).

/// Quotes words for `sh`. The shell expands nothing in a quoted word, and no control character reaches the terminal.
package enum ShellWord {
    /// Writes text in single quotes, and bytes that a terminal may interpret as a `printf` argument. A NUL cannot be in a word and is
    /// dropped.
    package static func quote(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self), isHarmless(text) {
            return "'" + text.escaping(["'": #"'\''"#]) + "'"
        }
        // Command substitution strips trailing line feeds, so they are appended in quotes.
        let end = bytes.reversed().prefix { $0 == 0x0A }.count
        let lines = end > 0 ? "'" + String(repeating: "\n", count: end) + "'" : ""
        return #""$(printf '%b' '\#(bytes.dropLast(end).filter { $0 != 0 }.map(escaped).joined())')""# + lines
    }

    /// Quotes text.
    package static func quote(_ text: String) -> String { quote(Array(text.utf8)) }

    /// True if a terminal displays every character and interprets none. Line feeds are allowed: inside quotes the shell continues the word.
    package static func isHarmless(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control: scalar == "\n"
            // Marks that change the writing direction would display another command than the one that is run.
            case .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: false
            default: true
            }
        }
    }

    private static func escaped(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "'"), UInt8(ascii: "\\"), 0..<0x20, 0x7F...: #"\0"# + octal(byte)
        default: String(Unicode.Scalar(byte))
        }
    }

    private static func octal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 8)
        return String(repeating: "0", count: 3 - digits.utf8.count) + digits
    }
}
