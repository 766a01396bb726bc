// The syntax of field values: lists, structured fields, and classes of bytes (RFC 9110 §5, RFC 9651).
package import HTTPTypes

/// Members of list-based fields, and access to field values by name (RFC 9110 §5.3, §5.6.1).
enum FieldList {
    /// The members of a comma-separated value, without surrounding whitespace and without empty ones. Commas within quoted strings do not
    /// separate.
    static func members(of value: String) -> [Substring] {
        var members: [Substring] = []
        let bytes = value.utf8
        var start = bytes.startIndex
        var index = start
        var isQuoted = false
        while index < bytes.endIndex {
            let byte = bytes[index]
            if isQuoted && byte == FieldByte.backslash {
                index = bytes.index(after: index)
                if index == bytes.endIndex { break }
            } else if byte == FieldByte.quote {
                isQuoted.toggle()
            } else if byte == FieldByte.comma && !isQuoted {
                append(value[start..<index], to: &members)
                start = bytes.index(after: index)
            }
            index = bytes.index(after: index)
        }
        append(value[start...], to: &members)
        return members
    }

    /// `text` without spaces and tabs at either end.
    static func trimmed(_ text: Substring) -> Substring {
        var bytes = text.utf8
        while let first = bytes.first, FieldByte.isSpace(first) { bytes.removeFirst() }
        while let last = bytes.last, FieldByte.isSpace(last) { bytes.removeLast() }
        return Substring(bytes)
    }

    private static func append(_ member: Substring, to members: inout [Substring]) {
        let member = trimmed(member)
        if !member.isEmpty { members.append(member) }
    }
}

extension HTTPFields {
    /// The combined value of the field with this lower-case name; nil if absent. Lines of `cookie` are joined by `; `, other fields by `,
    /// `. A single line, the usual case on a cache hit, is not copied.
    package func value(of canonicalName: String) -> String? {
        var value: String?
        for field in self where field.name.canonicalName == canonicalName {
            guard let earlier = value else {
                value = field.value
                continue
            }
            value = earlier + (canonicalName == "cookie" ? "; " : ", ") + field.value
        }
        return value
    }

    /// The value of a field that may occur once; nil if it is absent or repeated.
    func single(_ name: HTTPField.Name) -> String? {
        var value: String?
        for field in self where field.name == name {
            if value != nil { return nil }
            value = field.value
        }
        return value
    }
}

/// A field's value as bytes, because not every value is UTF-8 (RFC 9110 §5.5).
extension HTTPField {
    /// The value as received.
    package var valueBytes: [UInt8] { unsafe withUnsafeBytesOfValue { unsafe Array($0) } }

    /// True if `value` may differ from the bytes: it contains the first byte of U+FFFD's encoding.
    package var mayBeLossy: Bool { value.utf8.contains(0xEF) }

    /// A text that is unique to the value: bytes that are not UTF-8 are listed as numbers.
    package var distinctValue: String {
        let bytes = valueBytes
        return String(validating: bytes, as: UTF8.self) ?? "bytes \(bytes)"
    }
}

/// Serialises text as the bare item of a structured field: a token if possible, else a string (RFC 9651 §3.3.3, §3.3.4).
enum StructuredText {
    /// `text` as a token if it is a valid one, else as a quoted string.
    static func bareItem(_ text: String) -> String { isToken(text) ? text : string(text) }

    /// `text` quoted; bytes that a string cannot contain become `?`, so that the text cannot end the quotes.
    static func string(_ text: String) -> String {
        var quoted: [UInt8] = [0x22]
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5C: quoted += [0x5C, byte]
            case 0x20...0x7E: quoted.append(byte)
            default: quoted.append(0x3F)
            }
        }
        quoted.append(0x22)
        return String(decoding: quoted, as: UTF8.self)
    }

    private static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first, FieldByte.isLetter(first) || first == 0x2A else { return false }
        return text.utf8.allSatisfy { FieldByte.isTokenByte($0) || $0 == 0x3A || $0 == 0x2F }
    }
}

/// Classes of bytes in field values (RFC 9110 §5.6.2, §5.6.3).
enum FieldByte {
    static let comma: UInt8 = 0x2C
    static let quote: UInt8 = 0x22
    static let backslash: UInt8 = 0x5C
    static let equals: UInt8 = 0x3D

    /// Space or tab: optional whitespace.
    @inline(__always) static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    @inline(__always) static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
    @inline(__always) static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7A }
    @inline(__always) static func isLetterOrDigit(_ byte: UInt8) -> Bool { isLetter(byte) || isDigit(byte) }
    /// The bytes that a URI has unencoded everywhere (RFC 3986 §2.3).
    static func isUnreserved(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F || byte == 0x7E
    }
    /// Visible characters, spaces, tabs and obs-text (RFC 9110 §5.5).
    @inline(__always) static func isValue(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }
    /// The lower case of a letter; any other byte unchanged.
    @inline(__always) static func lowercased(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }

    /// `tchar`.
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
        default: isDigit(byte) || isLetter(byte)
        }
    }

    /// True if two texts are equal, ignoring the case of ASCII letters.
    static func equal(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
        a.count == b.count && zip(a, b).allSatisfy { lowercased($0) == lowercased($1) }
    }
}

/// Character classes of RFC 9110 §5.6 and RFC 5234 that several parsers here use.
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
