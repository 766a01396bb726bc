// Parses strings and numbers of JSON text (RFC 8259 §6, §7).

extension JSONParser {
    mutating func number() throws(JSONError) -> JSONNumber {
        let start = position
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        if let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
            throw JSONError(.malformedNumber, offset: start)
        }
        return JSONNumber(checked: String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func digits() throws(JSONError) {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw JSONError(.malformedNumber, offset: start) }
    }

    mutating func string() throws(JSONError) -> String {
        let start = position
        position += 1
        var units: [UInt8] = []
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                guard let string = String(validating: units, as: UTF8.self) else { throw JSONError(.malformedUTF8, offset: start) }
                return string
            case UInt8(ascii: "\\"):
                try escape(into: &units)
            case 0x00..<0x20:
                throw JSONError(.controlInString, offset: position)
            default:
                units.append(byte)
                position += 1
            }
        }
        throw JSONError(.unexpectedEnd, offset: position)
    }

    private mutating func escape(into units: inout [UInt8]) throws(JSONError) {
        let start = position
        position += 1
        guard let kind = next else { throw stop() }
        position += 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): units.append(kind)
        case UInt8(ascii: "b"): units.append(0x08)
        case UInt8(ascii: "f"): units.append(0x0C)
        case UInt8(ascii: "n"): units.append(0x0A)
        case UInt8(ascii: "r"): units.append(0x0D)
        case UInt8(ascii: "t"): units.append(0x09)
        case UInt8(ascii: "u"): units.append(contentsOf: Array(String(try scalar(from: start)).utf8))
        default: throw JSONError(.malformedEscape, offset: start)
        }
    }

    /// The scalar of `\uXXXX`, or of the two escapes of a surrogate pair.
    private mutating func scalar(from start: Int) throws(JSONError) -> Character {
        let unit = try hexUnit()
        if let scalar = Unicode.Scalar(unit) { return Character(scalar) }
        guard unit < 0xDC00, take("\\"), take("u") else { throw JSONError(.loneSurrogate, offset: start) }
        let low = try hexUnit()
        guard (0xDC00..<0xE000).contains(low),
            let scalar = Unicode.Scalar(0x1_0000 + (unit - 0xD800) << 10 + (low - 0xDC00))
        else { throw JSONError(.loneSurrogate, offset: start) }
        return Character(scalar)
    }

    private mutating func hexUnit() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next else { throw stop() }
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt32(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt32(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): value = value << 4 | UInt32(byte - UInt8(ascii: "A") + 10)
            default: throw JSONError(.malformedEscape, offset: position)
            }
            position += 1
        }
        return value
    }
}
