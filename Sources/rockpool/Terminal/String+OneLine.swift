// Text as one line, without control characters.

extension String {
    /// The text without control characters, so that values from servers and URLs cannot control the terminal.
    var inOneLine: String {
        String(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) })
    }
}
