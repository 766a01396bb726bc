// The tags of an XML document, for documents whose structure is known (https://www.w3.org/TR/xml/).

/// Iterates over the start and end tags. Names are without their prefix; comments, declarations and character data are passed over.
struct XMLTags: Sequence, IteratorProtocol {
    enum Kind { case start, end, empty }

    struct Tag {
        var kind: Kind
        var name: String
        var range: Range<Int>
    }

    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func next() -> Tag? {
        while let open = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
            let rest = bytes[open...]
            if rest.starts(with: Array("<!--".utf8)) {
                index = after("-->", from: open)
            } else if rest.starts(with: Array("<![CDATA[".utf8)) {
                index = after("]]>", from: open)
            } else if rest.starts(with: Array("<?".utf8)) || rest.starts(with: Array("<!".utf8)) {
                index = after(">", from: open)
            } else {
                let end = close(from: open)
                index = end
                let isEnd = rest.dropFirst().first == UInt8(ascii: "/")
                let name = bytes[(open + (isEnd ? 2 : 1))..<end].prefix { !Self.endsName.contains($0) }
                let isEmpty = end - 2 > open && bytes[end - 2] == UInt8(ascii: "/")
                let local = name.split(separator: UInt8(ascii: ":")).last ?? name
                return Tag(kind: isEnd ? .end : isEmpty ? .empty : .start, name: String(decoding: local, as: UTF8.self), range: open..<end)
            }
        }
        index = bytes.count
        return nil
    }

    private static let endsName: Set<UInt8> = Set(" \t\r\n/>".utf8)

    private func after(_ mark: String, from start: Int) -> Int {
        bytes[start...].firstRange(of: Array(mark.utf8))?.upperBound ?? bytes.count
    }

    /// The end of a tag, whose attributes may hold `>` within quotes.
    private func close(from start: Int) -> Int {
        var quote: UInt8?
        for place in start..<bytes.count {
            let byte = bytes[place]
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
            } else if byte == UInt8(ascii: ">") {
                return place + 1
            }
        }
        return bytes.count
    }
}

/// Character data.
enum XMLText {
    private static let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#38;", "&"), ("&amp;", "&")]

    static func decoded(_ bytes: some Collection<UInt8>) -> String {
        entities.reduce(String(decoding: bytes, as: UTF8.self)) { $1.0.isEmpty ? $0 : $0.replacing($1.0, with: $1.1) }
    }

    static func encoded(_ text: String) -> [UInt8] {
        text.utf8.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "&"): Array("&amp;".utf8)
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            case UInt8(ascii: ">"): Array("&gt;".utf8)
            // The only characters below the space that a document may hold.
            case 0..<0x20 where ![9, 10, 13].contains(byte): []
            default: [byte]
            }
        }
    }
}
