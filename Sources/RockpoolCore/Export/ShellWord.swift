// Any bytes as one word of a POSIX shell, safe to paste into a terminal (POSIX.1-2024, Shell Command Language §2.2.2).

/// Quotes for `sh`. Nothing of a word is ever expanded, and no control character reaches the terminal.
package enum ShellWord {
    /// Text in single quotes; bytes that a terminal may act on come out of `printf`. A NUL cannot be in a word and is left out.
    package static func quote(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self), isHarmless(text) {
            return "'" + text.escaping(["'": #"'\''"#]) + "'"
        }
        // A command's last line feeds are not part of its output's word.
        let end = bytes.reversed().prefix { $0 == 0x0A }.count
        let lines = end > 0 ? "'" + String(repeating: "\n", count: end) + "'" : ""
        return #""$(printf '%b' '\#(bytes.dropLast(end).filter { $0 != 0 }.map(escaped).joined())')""# + lines
    }

    /// The same for text.
    package static func quote(_ text: String) -> String { quote(Array(text.utf8)) }

    /// Whether a terminal shows every character and acts on none. Line feeds are: inside quotes a shell waits for their end.
    package static func isHarmless(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control: scalar == "\n"
            // Marks that turn the direction of writing would show another command than the one that is run.
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
