// The search for local ids in bytes of any syntax: plain, percent-encoded (RFC 3986 §2.1) or as JSON escapes (RFC 8259 §7), also nested,
// such as a URL in JSON or JSON in a form. One linear pass that allocates nothing but the ids (docs/outbox.md#local-ids).

/// The occurrence of a local id in some bytes.
struct LocalIDOccurrence: Hashable, Sendable {
    var id: LocalID
    /// The id's bytes, escapes included.
    var range: Range<Int>
    /// True if the id or an adjacent delimiter is percent-encoded: then its replacement is percent-encoded too.
    var isPercentEncoded: Bool

    /// Returns all occurrences, in order.
    static func all(in bytes: [UInt8]) -> [LocalIDOccurrence] {
        let span = bytes.span
        var found: [LocalIDOccurrence] = []
        var index = 0
        while let range = span.nextLocalID(from: index) {
            if let id = LocalID(utf8: span.characters(of: range)) {
                found.append(LocalIDOccurrence(id: id, range: range, isPercentEncoded: span.isPercentEncoded(range)))
            }
            index = range.upperBound
        }
        return found
    }
}

extension Span<UInt8> {
    /// Returns the bytes of the first local id at `start` or later. An id within a longer word does not count: the characters beside it,
    /// raw or decoded, must not be a letter or digit. A number with a sign or a fraction is another number.
    func nextLocalID(from start: Int) -> Range<Int>? {
        var index = start
        while index < count {
            var next = index + 1
            switch self[index] {
            case UInt8(ascii: "l") where next < count && mayFollow(self[next]): break
            case LocalID.firstDigit where next < count && mayContinueNumber(self[next]): break
            case UInt8(ascii: "%"), FieldByte.backslash:
                // Of several backslashes only the last ones belong to the escape.
                if let run = backslashes(at: index) { (index, next) = (run.escape, run.end) }
            default:
                index = next
                continue
            }
            if let end = endOfText(at: index) ?? endOfNumber(at: index), isBoundary(before: index) { return index..<end }
            index = next
        }
        return nil
    }

    /// True if the byte can be the second character, or the beginning of its escape; a fast filter that rejects most occurrences of `l`.
    @inline(__always) private func mayFollow(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "o") || byte == UInt8(ascii: "%") || byte == FieldByte.backslash
    }

    /// True if the byte can be the second digit of a number, or the beginning of its escape.
    @inline(__always) private func mayContinueNumber(_ byte: UInt8) -> Bool {
        byte.isDigit || byte == UInt8(ascii: "%") || byte == FieldByte.backslash
    }

    /// Returns the decoded characters of `range`.
    fileprivate func characters(of range: Range<Int>) -> [UInt8] {
        var characters: [UInt8] = []
        characters.reserveCapacity(LocalID.length)
        var index = range.lowerBound
        while index < range.upperBound {
            let character = character(at: index)
            characters.append(character.byte)
            index = character.end
        }
        return characters
    }

    fileprivate func isPercentEncoded(_ range: Range<Int>) -> Bool {
        let isWithin = range.contains { self[$0] == UInt8(ascii: "%") }
        let isBefore = percentEscape(endingAt: range.lowerBound) != nil
        return isWithin || isBefore || (range.upperBound < count && percentDecoded(at: range.upperBound).end > range.upperBound + 1)
    }

    private func endOfText(at start: Int) -> Int? {
        var index = start
        for place in 0..<LocalID.length {
            guard index < count else { return nil }
            let character = character(at: index)
            guard LocalID.allows(character.byte, at: place) else { return nil }
            index = character.end
        }
        return index == count || !self[index].isAlphanumeric ? index : nil
    }

    private func endOfNumber(at start: Int) -> Int? {
        var (index, value): (Int, UInt64) = (start, 0)
        for place in 0..<LocalID.digits {
            guard index < count else { return nil }
            let character = character(at: index)
            guard character.byte.isDigit, place > 0 || character.byte == LocalID.firstDigit else { return nil }
            value = value * 10 + UInt64(character.byte - UInt8(ascii: "0"))
            index = character.end
        }
        guard LocalID.isNumber(value), !isContinued(before: start) else { return nil }
        if index == count { return index }
        let hasFraction = self[index] == UInt8(ascii: ".") && index + 1 < count && self[index + 1].isDigit
        return self[index].isAlphanumeric || hasFraction ? nil : index
    }

    /// Returns the character at `index`, decoding either kind of escape.
    private func character(at index: Int) -> (byte: UInt8, end: Int) {
        let first = percentDecoded(at: index)
        guard first.byte == FieldByte.backslash, let run = backslashes(at: index), run.escape == index, run.end + 5 <= count,
            self[run.end] == UInt8(ascii: "u"), self[run.end + 1] == UInt8(ascii: "0"), self[run.end + 2] == UInt8(ascii: "0"),
            let byte = hexByte(at: run.end + 3)
        else { return first }
        return (byte, run.end + 5)
    }

    /// Returns the byte at `index`, decoding `%5F` and the doubly encoded `%255F`.
    private func percentDecoded(at index: Int) -> (byte: UInt8, end: Int) {
        let plain = (byte: self[index], end: index + 1)
        guard plain.byte == UInt8(ascii: "%") else { return plain }
        var digits = index + 1
        while let byte = hexByte(at: digits) {
            guard byte == UInt8(ascii: "%"), hexByte(at: digits + 2) != nil else { return (byte, digits + 2) }
            digits += 2
        }
        return plain
    }

    /// Returns the end of the backslashes at `index`, and the start of those that belong to an escape after them: each JSON text within
    /// another doubles them, so of n they are the largest power of two that divides n. Nil where there is no backslash.
    private func backslashes(at index: Int) -> (escape: Int, end: Int)? {
        let first = percentDecoded(at: index)
        guard first.byte == FieldByte.backslash else { return nil }
        let width = first.end - index
        var (length, end) = (1, first.end)
        while end < count, percentDecoded(at: end) == (FieldByte.backslash, end + width) {
            length += 1
            end += width
        }
        return (end - (length & -length) * width, end)
    }

    /// True if a sign, or digits before a point, make the number at `index` another one.
    private func isContinued(before index: Int) -> Bool {
        let escape = percentEscape(endingAt: index)
        let start = index - (escape == nil ? 1 : 3)
        guard start >= 0 else { return false }
        switch escape ?? self[start] {
        case UInt8(ascii: "-"): return true
        case UInt8(ascii: "."): return start > 0 && self[start - 1].isDigit
        default: return false
        }
    }

    /// True if a word may begin at `index`: the character before it is not a letter or digit, or it ends an escape that does not decode to
    /// one.
    private func isBoundary(before index: Int) -> Bool {
        guard index > 0, self[index - 1].isAlphanumeric else { return true }
        if let byte = percentEscape(endingAt: index) { return !byte.isAlphanumeric }
        if index >= 6, self[index - 5] == UInt8(ascii: "u"), isBackslash(endingAt: index - 5), let high = hexByte(at: index - 4),
            let low = hexByte(at: index - 2)
        {
            return high != 0 || !low.isAlphanumeric
        }
        switch self[index - 1] {
        case UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"), UInt8(ascii: "b"), UInt8(ascii: "f"):
            return isBackslash(endingAt: index - 1)
        default: return false
        }
    }

    private func isBackslash(endingAt end: Int) -> Bool {
        end > 0 && (self[end - 1] == FieldByte.backslash || percentEscape(endingAt: end) == FieldByte.backslash)
    }

    /// Returns the decoded byte of the percent escape that ends before `end`.
    private func percentEscape(endingAt end: Int) -> UInt8? {
        guard let byte = hexByte(at: end - 2) else { return nil }
        var sign = end - 3
        while sign >= 2, hexByte(at: sign - 1) == UInt8(ascii: "%") { sign -= 2 }
        return sign >= 0 && self[sign] == UInt8(ascii: "%") ? byte : nil
    }

    private func hexByte(at index: Int) -> UInt8? {
        guard index >= 0, index + 2 <= count, let high = FormEncoding.digit(self[index]), let low = FormEncoding.digit(self[index + 1])
        else { return nil }
        return high << 4 | low
    }
}

// MARK: - Tokens of JSON

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
