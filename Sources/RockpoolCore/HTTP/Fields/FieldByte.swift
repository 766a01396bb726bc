// Classes of bytes in field values (RFC 9110 §5.6.2, §5.6.3).

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
