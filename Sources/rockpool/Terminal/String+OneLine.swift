// Texts of servers, URLs and files on a terminal, which must not control it (docs/security-model.md#terminal).

extension String {
    /// The text as one line: what controls a terminal, breaks a line or changes the direction of writing becomes a space.
    var inOneLine: String { String(unicodeScalars.map { $0.steersTerminal ? " " : Character($0) }) }

    /// The text for a terminal, the last step of every output: what would control it is written as `\uXXXX`, which JSON understands as well.
    /// Line breaks, tabs, and the sequences for colours, erasing and the cursor's return, which the commands use, remain.
    var shownOnTerminal: String {
        guard unicodeScalars.contains(where: { $0.steersTerminal && $0 != "\n" }) else { return self }
        var shown = UnicodeScalarView()
        var rest = unicodeScalars[...]
        while let scalar = rest.first {
            let own = scalar == "\u{1B}" ? Self.ownSequence(rest) : ["\n", "\t", "\r"].contains(scalar) ? rest.prefix(1) : nil
            if let own {
                shown.append(contentsOf: own)
                rest = rest[own.endIndex...]
                continue
            }
            if scalar.steersTerminal {
                let digits = String(scalar.value, radix: 16)
                shown.append(contentsOf: ("\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits).unicodeScalars)
            } else {
                shown.append(scalar)
            }
            rest.removeFirst()
        }
        return String(shown)
    }

    /// The sequence of a command's own at the beginning of a text: `ESC [ numbers`, then `m`, `J`, `K` or `H`.
    private static func ownSequence(_ text: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView? {
        let inner = text.dropFirst()
        guard inner.first == "[" else { return nil }
        let end = inner.dropFirst().drop { ("0"..."9").contains($0) || $0 == ";" }
        guard let last = end.first, ["m", "J", "K", "H"].contains(last) else { return nil }
        return text[..<end.index(after: end.startIndex)]
    }
}

extension Unicode.Scalar {
    /// True for characters that control a terminal, end a line in one or change the direction of writing, so that a text looks like another.
    fileprivate var steersTerminal: Bool {
        guard value >= 0x80 else { return value < 0x20 || value == 0x7F }
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        default: return properties.isBidiControl
        }
    }
}
