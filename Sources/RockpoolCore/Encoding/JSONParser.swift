// Strict parsing of JSON text: exactly RFC 8259's grammar, with limits on depth and size.

/// Strict parsing of JSON text: exactly RFC 8259's grammar, with limits on depth and size.
extension JSONValue {
    /// Maximum nesting depth of arrays and objects.
    package static let depthLimit = 128
    /// Maximum size of one text in bytes, unless the caller specifies another.
    package static let sizeLimit = Int.mib(16)

    /// Parses a whole text in UTF-8 without a byte order mark. An object with a duplicate member name is rejected (RFC 7493 §2.3), because
    /// parsers differ in which one they keep and the value could not be represented fully.
    package static func parse(_ bytes: [UInt8], sizeLimit: Int = sizeLimit, depthLimit: Int = depthLimit) throws(JSONError) -> JSONValue {
        guard bytes.count <= sizeLimit else { throw JSONError(.tooLarge, offset: sizeLimit) }
        var parser = JSONParser(bytes: bytes, depthLimit: depthLimit)
        return try parser.text()
    }
}

/// Recursive descent parser for the bytes of one text.
struct JSONParser {
    let bytes: [UInt8]
    let depthLimit: Int
    var position = 0
    private var depth = 0

    init(bytes: [UInt8], depthLimit: Int) {
        self.bytes = bytes
        self.depthLimit = depthLimit
    }

    mutating func text() throws(JSONError) -> JSONValue {
        let value = try value()
        skipSpace()
        guard position == bytes.count else { throw JSONError(.trailingBytes, offset: position) }
        return value
    }

    /// The byte at the position; nil at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func value() throws(JSONError) -> JSONValue {
        skipSpace()
        guard let next else { throw stop() }
        switch next {
        case UInt8(ascii: "{"): return try nested { (parser) throws(JSONError) in try parser.object() }
        case UInt8(ascii: "["): return try nested { (parser) throws(JSONError) in try parser.array() }
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", value: .bool(true))
        case UInt8(ascii: "f"): return try word("false", value: .bool(false))
        case UInt8(ascii: "n"): return try word("null", value: .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        default: throw stop()
        }
    }

    private mutating func nested(_ read: (inout Self) throws(JSONError) -> JSONValue) throws(JSONError) -> JSONValue {
        guard depth < depthLimit else { throw JSONError(.tooDeep, offset: position) }
        depth += 1
        defer { depth -= 1 }
        position += 1
        return try read(&self)
    }

    private mutating func array() throws(JSONError) -> JSONValue {
        var elements: [JSONValue] = []
        skipSpace()
        if take("]") { return .array(elements) }
        repeat {
            elements.append(try value())
            skipSpace()
        } while take(",")
        guard take("]") else { throw stop() }
        return .array(elements)
    }

    private mutating func object() throws(JSONError) -> JSONValue {
        var members = JSONObject()
        skipSpace()
        if take("}") { return .object(members) }
        repeat {
            skipSpace()
            let start = position
            guard next == UInt8(ascii: "\"") else { throw stop() }
            let name = try string()
            guard members[name] == nil else { throw JSONError(.duplicateName, offset: start) }
            skipSpace()
            guard take(":") else { throw stop() }
            members[name] = try value()
            skipSpace()
        } while take(",")
        guard take("}") else { throw stop() }
        return .object(members)
    }

    private mutating func word(_ word: StaticString, value: JSONValue) throws(JSONError) -> JSONValue {
        for index in 0..<word.utf8CodeUnitCount {
            guard unsafe next == word.utf8Start[index] else { throw stop() }
            position += 1
        }
        return value
    }

    /// Consumes an ASCII character if it is next.
    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    /// The error for an unexpected byte or end at the position.
    func stop() -> JSONError {
        JSONError(position < bytes.count ? .unexpectedByte : .unexpectedEnd, offset: position)
    }
}

/// Numbers and strings (RFC 8259 §6, §7).
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

/// A parse error with its byte offset.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error, in words.
    package enum Problem: String, Sendable {
        case tooLarge = "larger than allowed"
        case tooDeep = "nested deeper than allowed"
        case unexpectedEnd = "ends early"
        case unexpectedByte = "unexpected byte"
        case trailingBytes = "more bytes after the value"
        case malformedNumber = "not a number"
        case malformedEscape = "not an escape"
        /// An escaped half of a surrogate pair, which no Unicode string contains.
        case loneSurrogate = "half of a surrogate pair"
        case malformedUTF8 = "not UTF-8"
        case controlInString = "control character in a string"
        case duplicateName = "a name occurs twice in an object"
    }

    /// The kind of error.
    package var problem: Problem
    /// Offset from the beginning of the text.
    package var offset: Int

    package var description: String { "\(problem.rawValue), at byte \(offset)" }

    package init(_ problem: Problem, offset: Int) {
        self.problem = problem
        self.offset = offset
    }
}
