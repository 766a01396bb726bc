// Escapes written into texts by scalars: a quote before a combining mark is one character, which `replacing` by text passes over.

extension String {
    /// The text with each of these scalars in its escaped form, whatever follows it.
    package func escaping(_ escapes: [Unicode.Scalar: String]) -> String {
        var text = UnicodeScalarView()
        for scalar in unicodeScalars {
            if let escape = escapes[scalar] { text.append(contentsOf: escape.unicodeScalars) } else { text.append(scalar) }
        }
        return String(text)
    }
}
