// The server id of an entity that had a local id, and its written form in each place of a request (docs/outbox.md#local-ids).

/// An upstream's own id.
package struct ServerID: Hashable, Sendable {
    /// The decoded id: not percent-encoded, not escaped.
    package var text: String
    /// True if it was a JSON number in the answer: where it is the whole of a JSON value it is written as a number.
    package var isNumber: Bool

    package init(text: String, isNumber: Bool = false) {
        self.text = text
        self.isNumber = isNumber
    }

    /// The id percent-encoded except for unreserved characters (RFC 3986 §2.3), so that it is literal in any part of a URI and in a form.
    package var percentEncoded: String { String(decoding: Self.percentEncoded(text), as: UTF8.self) }
}

extension ServerID {
    /// Returns the id escaped for its place. Nil where it cannot be written literally: it is empty, it would be a dot segment of the path,
    /// or the place has no escape for one of its characters.
    func written(at found: LocatedLocalID) -> [UInt8]? {
        if text.isEmpty { return nil }
        switch found.place {
        case .path: return isDotSegment ? nil : Self.percentEncoded(text)
        case .query, .form: return Self.percentEncoded(text)
        case _ where found.occurrence.isPercentEncoded: return Self.percentEncoded(text)
        case .json: return written(inJSON: found.isWholeValue)
        case .header: return text.utf8.allSatisfy { (0x21...0x7E).contains($0) && Self.isBare($0) } ? Array(text.utf8) : nil
        case .body: return text.utf8.allSatisfy(Self.isBare) ? Array(text.utf8) : nil
        }
    }

    /// True for `.` and `..`, which path normalisation removes, however they are encoded (RFC 3986 §6.2.2.3).
    var isDotSegment: Bool { text == "." || text == ".." }

    /// Returns the id with quotes or as a number where it is the whole value, without quotes inside a string.
    private func written(inJSON isWholeValue: Bool) -> [UInt8] {
        if isWholeValue, isNumber, JSONNumber(literal: text) != nil { return Array(text.utf8) }
        let string = JSONValue.string(text).serialized()
        return isWholeValue ? string : Array(string.dropFirst().dropLast())
    }

    /// True if the byte is literal in fields, markup and other text of unknown syntax.
    private static func isBare(_ byte: UInt8) -> Bool {
        switch byte {
        case FieldByte.quote, FieldByte.backslash, FieldByte.comma, UInt8(ascii: ";"), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "&"), 0x7F:
            false
        default: byte >= 0x20
        }
    }

    private static func percentEncoded(_ text: String) -> [UInt8] {
        text.utf8.reduce(into: []) { encoded, byte in
            switch byte {
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): encoded.append(byte)
            case _ where byte.isAlphanumeric: encoded.append(byte)
            default: FormEncoding.percentEncode(byte, into: &encoded)
            }
        }
    }
}
