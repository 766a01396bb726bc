// Strict parsing of JSON text: exactly RFC 8259's grammar, with limits on depth and size.

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
