// The examples in the help of a command (docs/reference/cli.md#commands). A test runs every one.

extension String {
    /// The heading above the examples in a help text.
    static let examplesHeading = "EXAMPLES"

    /// A part of a help text: `words`, then the examples, each as one line of at most 78 characters.
    static func examples(_ lines: String..., after words: String = "") -> String {
        let head = words.isEmpty ? "" : words + "\n\n"
        return head + examplesHeading + lines.map { "\n  " + $0 }.joined()
    }
}
