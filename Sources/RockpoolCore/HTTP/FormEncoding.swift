// Text as bytes: names and values of queries in canonical form (WHATWG URL §5, the urlencoded formats), escapes, and searches for words.

/// One name or value of a query in canonical form, independent of its percent-encoding (WHATWG URL §5, the urlencoded formats).
enum FormEncoding {
    /// The decoded text; bytes that are not UTF-8 become U+FFFD, as in the standard's parser.
    static func text(of encoded: some Collection<UInt8>) -> String { String(decoding: decoded(encoded), as: UTF8.self) }

    /// `encoded`, decoded and encoded again.
    static func canonical(of encoded: some Collection<UInt8>) -> String {
        if encoded.allSatisfy(isPlain) { return String(decoding: encoded, as: UTF8.self) }
        return Self.encoded(text(of: encoded))
    }

    /// Encodes a text as a name or a value of a form.
    static func encoded(_ value: String) -> String {
        var canonical: [UInt8] = []
        for byte in value.utf8 {
            if isPlain(byte) {
                canonical.append(byte)
            } else if byte == 0x20 {
                canonical.append(plus)
            } else {
                percentEncode(byte, into: &canonical)
            }
        }
        return String(decoding: canonical, as: UTF8.self)
    }

    /// Appends `%XX` (RFC 3986 §2.1).
    static func percentEncode(_ byte: UInt8, into text: inout [UInt8]) {
        text.append(percent)
        text.append(hexDigits[Int(byte >> 4)])
        text.append(hexDigits[Int(byte & 15)])
    }

    private static let plus: UInt8 = 0x2B
    private static let percent: UInt8 = 0x25
    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    /// Percent-decodes; `+` becomes a space if `plusIsSpace` (form data). A percent sign without two hexadecimal digits is literal.
    static func decoded(_ encoded: some Collection<UInt8>, plusIsSpace: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = encoded[...]
        while let byte = rest.popFirst() {
            if byte == percent, let high = rest.first.flatMap(digit), let low = rest.dropFirst().first.flatMap(digit) {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == plus && plusIsSpace ? 0x20 : byte)
            }
        }
        return bytes
    }

    /// Bytes that the application/x-www-form-urlencoded percent-encode set leaves unencoded.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x2A, 0x2D, 0x2E, 0x5F: true
        default: byte.isAlphanumeric
        }
    }

    /// The value of a hexadecimal digit.
    static func digit(_ byte: UInt8) -> UInt8? {
        guard byte.isHexDigit else { return nil }
        return byte.isDigit ? byte - 0x30 : (byte | 0x20) - 0x57
    }
}

extension Substring {
    /// The text of a segment of a path (RFC 3986 §2.1); nil if it is no text.
    var percentDecoded: String? { String(validating: FormEncoding.decoded(utf8, plusIsSpace: false), as: UTF8.self) }
}

/// Escapes single scalars in text. `replacing` works on characters and misses a quote that is followed by a combining mark.
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

/// Searches for one ASCII word. The standard library's search builds tables for each call, which cost more than the whole search of a short
/// text.
enum WordSearch {
    /// True if the bytes contain `word`.
    /// - Parameter anyCase: true if capital letters of the bytes count as small ones; the word has none then.
    static func finds(_ word: StaticString, in text: Span<UInt8>, anyCase: Bool = false) -> Bool {
        let length = word.utf8CodeUnitCount
        guard length > 0, text.count >= length else { return length == 0 }
        for start in 0...(text.count - length) {
            var index = 0
            while index < length {
                let byte = text[start + index]
                let isCapital = anyCase && 0x41...0x5A ~= byte
                guard unsafe (isCapital ? byte | 0x20 : byte) == word.utf8Start[index] else { break }
                index += 1
            }
            if index == length { return true }
        }
        return false
    }
}

extension String {
    /// True if the text contains `word`, whose letters are small ones, in any case of ASCII letters.
    package func contains(anyCase word: StaticString) -> Bool {
        WordSearch.finds(word, in: utf8.span, anyCase: true)
    }
}

extension [UInt8] {
    /// True if the bytes contain `word`.
    func holds(_ word: StaticString) -> Bool { WordSearch.finds(word, in: span) }
}
