// Finds the values of a request's fields in the response to it: what a response repeats, it depends on, whatever its Vary says
// (docs/security-model.md#unkeyed-inputs).
package import HTTPTypes

/// One pass over a response for the values of the fields that nothing else is known of (`UnkeyedField`).
package struct EchoSearch: Sendable {
    /// The fields that are searched for; the search knows them by their places here.
    private let names: [HTTPField.Name]
    private var search: TextSearch
    /// Fields whose values may be there unseen.
    private var unseen: [HTTPField.Name] = []
    private let unknown: [HTTPField.Name]

    /// Shorter values, such as `1` or `on`, are everywhere.
    private static let leastLength = 4
    /// Shorter values count as whole words only.
    private static let wordLength = 8
    private static let textLimit = 24

    /// Nil if the request has no field to look for.
    package init?(for request: RequestHead) {
        var (names, texts, unknown, unseen): ([HTTPField.Name], [TextSearch.Text], [HTTPField.Name], [HTTPField.Name]) = ([], [], [], [])
        for field in request.fields where Self.isSearched(field) {
            let kind = UnkeyedField(field.name)
            guard kind == .unknown || kind == .describes else { continue }
            if kind == .unknown { unknown.append(field.name) }
            let forms = Self.forms(of: field.valueBytes, isEscaped: kind == .unknown)
            // Of more fields than programs send, any may be repeated.
            guard texts.count + forms.count <= Self.textLimit else {
                if kind == .unknown { unseen.append(field.name) }
                continue
            }
            texts += forms.map { TextSearch.Text(bytes: $0, owner: names.count, isWord: $0.count < Self.wordLength) }
            names.append(field.name)
        }
        if texts.isEmpty, unseen.isEmpty { return nil }
        (self.names, search, self.unknown, self.unseen) = (names, TextSearch(texts), unknown, unseen)
    }

    /// The names of the fields whose values were found, or may be there unseen, each once.
    package var found: [HTTPField.Name] {
        var found: [HTTPField.Name] = []
        for (place, name) in names.enumerated() where search.found >> UInt64(place) & 1 == 1 && !found.contains(name) { found.append(name) }
        for name in unseen where !found.contains(name) { found.append(name) }
        return found
    }

    /// True for a value that is long enough to tell something, and no word of every JSON document.
    static func isSearched(_ field: HTTPField) -> Bool {
        field.value.utf8.count >= leastLength && !["true", "false", "null"].contains(field.value)
    }

    /// A value as texts of HTML and JSON, and a URL, have it.
    private static func forms(of value: [UInt8], isEscaped: Bool) -> Set<[UInt8]> {
        func form(_ escape: (UInt8) -> [UInt8]?) -> [UInt8] {
            Array(value.prefix(TextSearch.mostLength).flatMap { escape($0) ?? [$0] }.prefix(TextSearch.mostLength))
        }
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
    package mutating func read(_ bytes: Span<UInt8>) { search.read(bytes) }

    /// Ends a text: what follows is another one.
    package mutating func end() { search.end() }

    /// Takes the rest for a text that may repeat the value of every unknown field.
    package mutating func cannotRead() { unseen += unknown }

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
