// Finds the values of a request's fields in the response to it: what a response repeats, it depends on, whatever its Vary says
// (docs/security-model.md#unkeyed-inputs).
package import HTTPTypes

/// One pass over a response for the values of the fields that nothing else is known of (`UnkeyedField`). Each byte is compared a bounded number
/// of times, for at most `needleLimit` texts.
package struct EchoSearch: Sendable {
    /// The names of the fields whose values were found, or may be there unseen.
    package private(set) var found: [HTTPField.Name] = []
    private var needles: [Needle] = []
    private let unknown: [HTTPField.Name]

    /// Shorter values, such as `1` or `on`, are everywhere.
    private static let leastLength = 4
    /// Of a longer value its beginning is searched for.
    private static let mostLength = 128
    private static let needleLimit = 24

    /// Nil if the request has no field to look for.
    package init?(for request: RequestHead) {
        var unknown: [HTTPField.Name] = []
        for field in request.fields where Self.isSearched(field) {
            let kind = UnkeyedField(field.name)
            guard kind == .unknown || kind == .describes else { continue }
            if kind == .unknown { unknown.append(field.name) }
            let texts = Self.forms(of: field.valueBytes, isEscaped: kind == .unknown)
            // Of more fields than programs send, any may be repeated.
            guard needles.count + texts.count <= Self.needleLimit else {
                if kind == .unknown { found.append(field.name) }
                continue
            }
            needles += texts.map { Needle($0, of: field.name) }
        }
        self.unknown = unknown
        if needles.isEmpty, found.isEmpty { return nil }
    }

    /// True for a value that is long enough to tell something, and no word of every JSON document.
    static func isSearched(_ field: HTTPField) -> Bool {
        field.value.utf8.count >= leastLength && !["true", "false", "null"].contains(field.value)
    }

    /// A value as texts of HTML and JSON, and a URL, have it.
    private static func forms(of value: [UInt8], isEscaped: Bool) -> Set<[UInt8]> {
        func form(_ escape: (UInt8) -> [UInt8]?) -> [UInt8] { Array(value.flatMap { escape($0) ?? [$0] }.prefix(mostLength)) }
        guard isEscaped else { return [form { _ in nil }] }
        return [
            form { _ in nil }, form { html[$0].map { Array($0.utf8) } },
            form { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), $0] : nil },
            form { $0 == UInt8(ascii: "/") ? [UInt8(ascii: "\\"), $0] : nil },
            form { FieldByte.isUnreserved($0) ? nil : [UInt8(ascii: "%")] + hex($0) },
        ]
    }

    private static let html: [UInt8: String] = [0x26: "&amp;", 0x3C: "&lt;", 0x3E: "&gt;", 0x22: "&quot;", 0x27: "&#39;"]

    private static func hex(_ byte: UInt8) -> [UInt8] { Array(((byte < 16 ? "0" : "") + String(byte, radix: 16)).utf8) }

    // MARK: search

    /// Searches the values of a head's fields. `Vary` has names of fields, not values.
    package mutating func read(_ head: ResponseHead) {
        for field in head.fields where field.name != .vary {
            read(field.value.utf8.span)
            end()
        }
    }

    /// Searches the next bytes of the body.
    package mutating func read(_ bytes: Span<UInt8>) {
        for index in needles.indices where !found.contains(needles[index].name) && needles[index].isIn(bytes) {
            found.append(needles[index].name)
        }
    }

    /// Ends a text: what follows is another one.
    package mutating func end() {
        for index in needles.indices where needles[index].endsText() && !found.contains(needles[index].name) {
            found.append(needles[index].name)
        }
    }

    /// Takes the rest for a text that may repeat the value of every unknown field.
    package mutating func cannotRead() { for name in unknown where !found.contains(name) { found.append(name) } }

    /// What of a response can be searched.
    package enum Content: Sendable {
        case plain
        /// In the coding of the head, which can be undone.
        case coded
        /// In a coding that cannot.
        case unreadable
        /// Pictures, sound and archives, which repeat no text.
        case media
    }

    package static func content(of head: ResponseHead) -> Content {
        if let type = MediaType.essence(of: head.fields), isMedia(type) { return .media }
        guard ContentCoding.isCoded(head.fields) else { return .plain }
        return head.status != 206 && ContentCoding.isDecodable(head.fields) ? .coded : .unreadable
    }

    private static func isMedia(_ type: String) -> Bool {
        if type == "image/svg+xml" { return false }
        return ["image/", "audio/", "video/", "font/"].contains { type.hasPrefix($0) }
            || ["application/zip", "application/gzip", "application/x-gzip", "application/x-tar", "application/x-xz", "application/zstd"]
                .contains(type)
    }
}

/// One text, and how much of it has been seen: the search of Knuth, Morris and Pratt, in any case of letters.
private struct Needle: Sendable {
    let name: HTTPField.Name
    private let text: [UInt8]
    /// The length of the longest beginning of the text that ends at each place.
    private let borders: [Int]
    /// True for a short text, which counts as a whole word only.
    private let isWord: Bool
    private var seen = 0
    /// True if the last byte belongs to a word.
    private var isInWord = false
    /// True if the text was seen, and is a word unless one goes on.
    private var isWaiting = false

    private static let wordLength = 8

    init(_ text: [UInt8], of name: HTTPField.Name) {
        let text = text.map(FieldByte.lowercased)
        var borders = [Int](repeating: 0, count: text.count)
        var length = 0
        for index in text.indices.dropFirst() {
            while length > 0, text[index] != text[length] { length = borders[length - 1] }
            if text[index] == text[length] { length += 1 }
            borders[index] = length
        }
        (self.name, self.text, self.borders, isWord) = (name, text, borders, text.count < Self.wordLength)
    }

    mutating func isIn(_ bytes: Span<UInt8>) -> Bool {
        let first = text[0]
        var index = 0
        while index < bytes.count {
            if seen == 0, !isWord {
                while index < bytes.count, FieldByte.lowercased(bytes[index]) != first { index += 1 }
                guard index < bytes.count else { return false }
            }
            let byte = FieldByte.lowercased(bytes[index])
            if take(byte) { return true }
            index += 1
        }
        return false
    }

    /// - Returns: True once the text is there.
    private mutating func take(_ byte: UInt8) -> Bool {
        guard isWord else {
            while seen > 0, text[seen] != byte { seen = borders[seen - 1] }
            if text[seen] == byte { seen += 1 }
            guard seen == text.count else { return false }
            seen = borders[seen - 1]
            return true
        }
        let (wasInWord, isLetter) = (isInWord, FieldByte.isLetterOrDigit(byte))
        isInWord = isLetter
        if isWaiting, !isLetter { return true }
        isWaiting = false
        if seen > 0, text[seen] != byte { seen = 0 }
        // It begins where a word does, or where none is.
        if text[seen] == byte, seen > 0 || !wasInWord || !isLetter { seen += 1 }
        if seen == text.count { (isWaiting, seen) = (true, 0) }
        return false
    }

    /// Forgets the text before. - Returns: True if that ended with this text as a word.
    mutating func endsText() -> Bool {
        defer { (seen, isInWord, isWaiting) = (0, false, false) }
        return isWaiting
    }
}
