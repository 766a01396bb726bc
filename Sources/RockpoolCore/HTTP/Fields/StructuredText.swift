// Serialises text as the bare item of a structured field: a token if possible, else a string (RFC 9651 §3.3.3, §3.3.4).

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
