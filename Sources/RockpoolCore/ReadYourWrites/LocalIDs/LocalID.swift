// Ids that the proxy mints for entities without a server id, recognisable in any text, and the ids that take their place
// (docs/outbox.md#local-ids).

/// A local id: a text, `loc_` and a UUIDv7 in lower case, 40 characters; or, where the API's ids are numbers, a number of 16 digits.
package struct LocalID: Hashable, Sendable, CustomStringConvertible {
    /// Those of the UUID; a number is the high half beside 0, which no UUIDv7 has.
    private let bits: UUIDBits

    /// True if it is a number, and is written as one in JSON.
    package var isNumber: Bool { bits.low == 0 }

    /// The id in its written form.
    package var text: String { isNumber ? String(bits.high) : "loc_" + bits.text }

    /// Parses text that is exactly one local id; nil otherwise. A UUID of another version was not minted here.
    package init?(_ text: some StringProtocol) { self.init(utf8: text.utf8) }

    /// Parses the bytes of a text as `init(_:)` does.
    init?(utf8 bytes: some Sequence<UInt8>) {
        if let number = Self.number(bytes) {
            bits = UUIDBits(high: number, low: 0)
            return
        }
        var place = 0
        for byte in bytes {
            guard place < Self.length, Self.allows(byte, at: place) else { return nil }
            place += 1
        }
        guard place == Self.length, let bits = UUIDBits(bytes.dropFirst(4)) else { return nil }
        self.bits = bits
    }

    private init(_ bits: UUIDBits) { self.bits = bits }

    /// Mints a text. `random` provides 74 bits (RFC 9562 §5.7).
    package static func make(now: Timestamp, random: (UInt64, UInt64)) -> LocalID {
        LocalID(UUIDv7.bits(now: now, random: random))
    }

    /// Mints a number.
    package static func makeNumber(random: UInt64) -> LocalID {
        let multiples = (numbers.upperBound - numbers.lowerBound) / divisor
        let first = (numbers.lowerBound + divisor - 1) / divisor
        return LocalID(UUIDBits(high: (first + random % multiples) * divisor, low: 0))
    }

    package var description: String { text }

    // MARK: - The form of texts

    /// The length of a text in characters.
    static let length = 40

    /// True if `byte` may stand at index `place`, 0..<40.
    static func allows(_ byte: UInt8, at place: Int) -> Bool {
        switch place {
        case 0: byte == UInt8(ascii: "l")
        case 1: byte == UInt8(ascii: "o")
        case 2: byte == UInt8(ascii: "c")
        case 3: byte == UInt8(ascii: "_")
        case 12, 17, 22, 27: byte == UInt8(ascii: "-")
        case 18: byte == UInt8(ascii: "7")  // the version
        case 23: byte == UInt8(ascii: "8") || byte == UInt8(ascii: "9") || byte == UInt8(ascii: "a") || byte == UInt8(ascii: "b")
        default: byte.isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
    }

    // MARK: - The form of numbers

    /// The number of digits, and the first one of them.
    static let digits = 16
    static let firstDigit = UInt8(ascii: "8")
    /// Within the integers that every JSON reader has (RFC 8259 §6), and above the ids that an API counts.
    private static let numbers: Range<UInt64> = 8_000_000_000_000_000..<9_000_000_000_000_000
    /// Only multiples of it are minted, so that most other numbers are known to be none without the table.
    private static let divisor: UInt64 = 97

    /// True if the number may have been minted.
    static func isNumber(_ value: UInt64) -> Bool { numbers.contains(value) && value.isMultiple(of: divisor) }

    private static func number(_ bytes: some Sequence<UInt8>) -> UInt64? {
        var (value, place): (UInt64, Int) = (0, 0)
        for byte in bytes {
            guard place < digits, byte.isDigit else { return nil }
            value = value * 10 + UInt64(byte - UInt8(ascii: "0"))
            place += 1
        }
        return place == digits && isNumber(value) ? value : nil
    }
}

// MARK: - New items

/// The id under which the item of a create is known before its upstream has answered.
package enum NewItemID: Hashable, Sendable {
    /// Minted here: the upstream assigns another one.
    case local(LocalID)
    /// The key that the client has given it, at an API that keeps such keys (docs/outbox.md#chosen-keys).
    case chosen(String)

    /// Reads the stored form.
    package init(_ text: String) { self = LocalID(text).map { .local($0) } ?? .chosen(text) }

    /// The id in its written form.
    package var text: String {
        switch self {
        case .local(let id): id.text
        case .chosen(let key): key
        }
    }

    /// The minted one; nil for a key.
    package var local: LocalID? { if case .local(let id) = self { id } else { nil } }
}

// MARK: - Server ids

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

/// The server id and URL that a local id maps to.
package struct ServerMapping: Hashable, Sendable {
    /// The upstream's id.
    package var id: ServerID
    /// The item's absolute URL.
    package var url: String

    package init(id: ServerID, url: String) {
        self.id = id
        self.url = url
    }
}

// MARK: - Dependencies

/// The reason why one operation needs another. The raw values are stored in the `op_dep` table (docs/outbox.md#dependencies).
package enum DependencyKind: String, CaseIterable, Sendable, Codable {
    /// Its request contains a local id that the other operation's answer will map.
    case id
    /// Its condition names the state that the other operation produces (docs/outbox.md#local-etags).
    case etag
    /// Its path is below the entity that the other operation creates.
    case parent
    /// The client declared it in `Rockpool-Depends-On`.
    case explicit
    /// Both belong to one `Rockpool-Group`.
    case group
    /// One writes to a collection, the other to a member of it.
    case collection

    /// True if it keeps an order, and the later operation needs nothing of the earlier one.
    package var isOfOrder: Bool { self == .group || self == .collection }
}

/// A dependency edge: some operation needs the one numbered `needs`.
package struct Dependency: Hashable, Sendable {
    /// Sequence of the operation that must be delivered first.
    package var needs: Int64
    package var kind: DependencyKind

    package init(needs: Int64, kind: DependencyKind) {
        self.needs = needs
        self.kind = kind
    }
}

// MARK: - Ids in tables

/// A text that needs no allocation where it is a UUID or a local id, and is kept as it is otherwise.
package struct UUIDText: Hashable, Sendable {
    private enum Form: Hashable, Sendable {
        case uuid(UUIDBits)
        case local(LocalID)
        case other(String)
    }

    private let form: Form

    /// Keeps any text.
    package init(_ text: String) {
        form = UUIDBits(text.utf8).map { .uuid($0) } ?? LocalID(text).map { .local($0) } ?? .other(text)
    }

    /// The text.
    package var text: String {
        switch form {
        case .uuid(let bits): bits.text
        case .local(let id): id.text
        case .other(let text): text
        }
    }
}
