// The strings and numbers of a JSON text with their byte ranges, so that one can be replaced without changing any other byte (RFC 8259).

/// Iterates over the strings and numbers of a JSON text that was parsed before, so it is known to be well-formed and not too deep.
struct JSONTokenWalk {
    enum Kind: Hashable {
        case string
        /// The name of a member.
        case name
        case number
    }

    struct Found: Hashable {
        /// The bytes of a number, or those between the quotes.
        var content: Range<Int>
        var kind: Kind
    }

    /// The position of the walk within an array or object. A member's name is nil before it has been read.
    private enum Level {
        case array(index: Int)
        case object(name: Range<Int>?)
    }

    private let bytes: [UInt8]
    private var position = 0
    private var levels: [Level] = []

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the next string or number, nil after the last.
    mutating func next() -> Found? {
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "["): levels.append(.array(index: 0))
            case UInt8(ascii: "{"): levels.append(.object(name: nil))
            case UInt8(ascii: "]"), UInt8(ascii: "}"): levels.removeLast()
            case FieldByte.comma: advance()
            case FieldByte.quote: return string()
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
            default: break
            }
        }
        return nil
    }

    /// The pointer to the last one found; for a name, the pointer to its member.
    var pointer: JSONPointer {
        JSONPointer(
            tokens: levels.map { level in
                switch level {
                case .array(let index): String(index)
                case .object(let name): name.map(text) ?? ""
                }
            })
    }

    private mutating func advance() {
        switch levels.popLast() {
        case .array(let index): levels.append(.array(index: index + 1))
        case .object: levels.append(.object(name: nil))
        case nil: break
        }
    }

    private mutating func string() -> Found {
        let start = position
        while position < bytes.count, bytes[position] != FieldByte.quote { position += bytes[position] == FieldByte.backslash ? 2 : 1 }
        let content = start..<min(position, bytes.count)
        position += 1
        guard case .object(name: nil) = levels.last else { return Found(content: content, kind: .string) }
        levels[levels.count - 1] = .object(name: content)
        return Found(content: content, kind: .name)
    }

    private mutating func number() -> Found {
        let start = position - 1
        while position < bytes.count, Self.mayFollow(bytes[position]) { position += 1 }
        return Found(content: start..<position, kind: .number)
    }

    /// True for the bytes of a number after its first one.
    private static func mayFollow(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): true
        default: byte.isDigit
        }
    }

    /// Returns the decoded text of the string between these quotes.
    func text(_ content: Range<Int>) -> String {
        var parser = JSONParser(bytes: Array(bytes[content.lowerBound - 1...content.upperBound]), depthLimit: 0)
        return (try? parser.string()) ?? ""
    }
}
