// Escapes single scalars in text. `replacing` works on characters and misses a quote that is followed by a combining mark.

extension String {
    /// The text with each of these scalars replaced by its escaped form, whatever follows it.
    package func escaping(_ escapes: [Unicode.Scalar: String]) -> String {
        var text = UnicodeScalarView()
        for scalar in unicodeScalars {
            if let escape = escapes[scalar] { text.append(contentsOf: escape.unicodeScalars) } else { text.append(scalar) }
        }
        return String(text)
    }
}
