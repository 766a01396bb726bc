// Character classes of RFC 9110 §5.6 and RFC 5234 that several parsers here use.

extension Substring {
    /// The text without surrounding spaces and tabs (RFC 9110 §5.6.3).
    func trimmingOWS() -> Substring {
        var text = self
        while text.utf8.first?.isOWS == true { text = text[text.utf8.index(after: text.startIndex)...] }
        while text.utf8.last?.isOWS == true { text = text[..<text.utf8.index(before: text.endIndex)] }
        return text
    }

    /// True if the text is `1*DIGIT`.
    var isDigits: Bool { !isEmpty && utf8.allSatisfy(\.isDigit) }
}

extension UInt8 {
    var isOWS: Bool { self == 0x20 || self == 0x09 }
    var isDigit: Bool { (0x30...0x39).contains(self) }
    var isAlphanumeric: Bool { isDigit || (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) }
    var isHexDigit: Bool { isDigit || (0x41...0x46).contains(self) || (0x61...0x66).contains(self) }
}
