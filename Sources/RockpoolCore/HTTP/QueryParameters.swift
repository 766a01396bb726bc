// Queries: the parameters a response depends on and the common text of equivalent ones (No-Vary-Search,
// draft-ietf-httpbis-no-vary-search), and names and values in canonical form.
package import HTTPTypes
import RawStructuredFieldValues

/// The value of `No-Vary-Search`, set by a response or by the operator for a route. Parameter names are compared in decoded form.
package struct SearchVariance: Hashable, Sendable {
    /// Names in the form produced by `FormEncoding`, which is ASCII with one text per name.
    private enum Parameters: Hashable, Sendable {
        case allBut(Set<String>)
        case only(Set<String>)
    }

    private var significant = Parameters.allBut([])
    private var ignoresKeyOrder = false

    /// Every byte of the query is significant.
    package static let `default` = SearchVariance()
    package var isDefault: Bool { self == .default }

    /// Bytes of a field; a longer one counts as malformed.
    package static let maxFieldBytes = Int.kib(4)
    /// Bytes of a query that is normalised; a longer query is left unchanged, as is every query under the default.
    package static let maxQueryBytes = Int.kib(8)
    /// Parameters, empty ones included, of a query that is normalised. Within these limits a query takes at most two milliseconds (if it
    /// consists of percent-encoded bytes that are not UTF-8); a typical one takes two microseconds.
    package static let maxParameters = 512

    private init() {}

    /// The variance declared by a response with `fields`; the default if the field is absent or malformed.
    package init(_ fields: HTTPFields) {
        self = fields.value(of: "no-vary-search").flatMap(SearchVariance.init(fieldValue:)) ?? .default
    }

    /// Parses a field's value, stored or configured; nil if it is malformed, which in a response means the default.
    ///
    /// The drafts differ in the notation for "no parameter matters": `params` (implemented by browsers) or `except=()` (the latest). Both
    /// are accepted, because no value has different meanings in the two.
    package init?(fieldValue: String) {
        guard fieldValue.utf8.count <= Self.maxFieldBytes else { return nil }
        var parser = StructuredFieldValueParser(Array(fieldValue.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        if let order = members["key-order"] {
            guard let isIgnored = Self.boolean(of: order) else { return nil }
            ignoresKeyOrder = isIgnored
        }
        switch (members["params"], members["except"]) {
        case (nil, nil): break
        case (let params?, nil):
            if let isAll = Self.boolean(of: params) {
                if isAll { significant = .only([]) }
            } else {
                guard let names = Self.names(in: params) else { return nil }
                significant = .allBut(names)
            }
        case (let params, let except?):
            guard params.map({ Self.boolean(of: $0) == true }) ?? true, let names = Self.names(in: except) else { return nil }
            significant = .only(names)
        }
    }

    /// The value to store or show, accepted by `init(fieldValue:)`; empty for the default.
    package var fieldValue: String {
        var members: [String] = ignoresKeyOrder ? ["key-order"] : []
        switch significant {
        case .allBut(let names): if !names.isEmpty { members.append("params=\(Self.innerList(of: names))") }
        case .only(let names): members.append("except=\(Self.innerList(of: names))")
        }
        return members.joined(separator: ", ")
    }

    /// The text shared by equivalent queries and by no others: decoded and encoded again, without insignificant parameters, and stably
    /// sorted by name if the order of names is insignificant. Under the default, or past the limits, the query is returned unchanged.
    package func normalized(query: String) -> String {
        guard !isDefault, query.utf8.count <= Self.maxQueryBytes else { return query }
        let sequences = query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        guard sequences.count <= Self.maxParameters else { return query }
        var parameters: [(name: String, value: String)] = []
        for sequence in sequences where !sequence.isEmpty {
            let encodedName = sequence.prefix { $0 != FieldByte.equals }
            let name = FormEncoding.canonical(of: encodedName)
            guard isSignificant(name) else { continue }
            parameters.append((name, FormEncoding.canonical(of: sequence.dropFirst(encodedName.count + 1))))
        }
        if ignoresKeyOrder { parameters.sort { $0.name < $1.name } }
        return parameters.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    }

    /// `target` (path and query) with its query normalised; two targets are equivalent if the results are equal. Except under the default,
    /// an empty query equals no query.
    package func normalized(target: String) -> String {
        guard !isDefault, let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return target }
        let query = normalized(query: String(target[target.utf8.index(after: mark)...]))
        return query.isEmpty ? String(target[..<mark]) : "\(target[..<mark])?\(query)"
    }

    private func isSignificant(_ name: String) -> Bool {
        switch significant {
        case .allBut(let names): !names.contains(name)
        case .only(let names): names.contains(name)
        }
    }

    private static func boolean(of member: ItemOrInnerList) -> Bool? {
        guard case .item(let item) = member, case .bool(let value) = item.rfc9651BareItem else { return nil }
        return value
    }

    /// The names of an inner list; nil if the member is not an inner list or contains an item other than a string.
    private static func names(in member: ItemOrInnerList) -> Set<String>? {
        guard case .innerList(let list) = member else { return nil }
        var names: Set<String> = []
        for item in list.bareInnerList {
            guard case .string(let name) = item.rfc9651BareItem else { return nil }
            names.insert(FormEncoding.canonical(of: name.utf8))
        }
        return names
    }

    private static func innerList(of names: Set<String>) -> String {
        "(\(names.sorted().map(StructuredText.string).joined(separator: " ")))"
    }
}

// MARK: - Forms and escapes

/// One name or value of a query in canonical form, independent of its percent-encoding (WHATWG URL §5, the urlencoded formats).
enum FormEncoding {
    /// The decoded text; bytes that are not UTF-8 become U+FFFD, as in the standard's parser.
    static func text(of encoded: some Collection<UInt8>) -> String { String(decoding: decoded(encoded), as: UTF8.self) }

    /// `encoded`, decoded and encoded again.
    static func canonical(of encoded: some Collection<UInt8>) -> String {
        if encoded.allSatisfy(isPlain) { return String(decoding: encoded, as: UTF8.self) }
        return Self.encoded(text(of: encoded))
    }

    /// Encodes a text as a name or a value of a form.
    static func encoded(_ value: String) -> String {
        var canonical: [UInt8] = []
        for byte in value.utf8 {
            if isPlain(byte) {
                canonical.append(byte)
            } else if byte == 0x20 {
                canonical.append(plus)
            } else {
                percentEncode(byte, into: &canonical)
            }
        }
        return String(decoding: canonical, as: UTF8.self)
    }

    /// Appends `%XX` (RFC 3986 §2.1).
    static func percentEncode(_ byte: UInt8, into text: inout [UInt8]) {
        text.append(percent)
        text.append(hexDigits[Int(byte >> 4)])
        text.append(hexDigits[Int(byte & 15)])
    }

    private static let plus: UInt8 = 0x2B
    private static let percent: UInt8 = 0x25
    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    /// Percent-decodes; `+` becomes a space if `plusIsSpace` (form data). A percent sign without two hexadecimal digits is literal.
    static func decoded(_ encoded: some Collection<UInt8>, plusIsSpace: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = encoded[...]
        while let byte = rest.popFirst() {
            if byte == percent, let high = rest.first.flatMap(digit), let low = rest.dropFirst().first.flatMap(digit) {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == plus && plusIsSpace ? 0x20 : byte)
            }
        }
        return bytes
    }

    /// Bytes that the application/x-www-form-urlencoded percent-encode set leaves unencoded.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x2A, 0x2D, 0x2E, 0x5F: true
        default: byte.isAlphanumeric
        }
    }

    /// The value of a hexadecimal digit.
    static func digit(_ byte: UInt8) -> UInt8? {
        guard byte.isHexDigit else { return nil }
        return byte.isDigit ? byte - 0x30 : (byte | 0x20) - 0x57
    }
}

extension Substring {
    /// The text of a segment of a path (RFC 3986 §2.1); nil if it is no text.
    var percentDecoded: String? { String(validating: FormEncoding.decoded(utf8, plusIsSpace: false), as: UTF8.self) }
}

/// Escapes single scalars in text. `replacing` works on characters and misses a quote that is followed by a combining mark.
extension String {
    /// The text with each of these scalars replaced by its escaped form, whatever follows it.
    package func escaping(_ escapes: [Unicode.Scalar: String]) -> String {
        var text = UnicodeScalarView()
        for scalar in unicodeScalars {
            if let escape = escapes[scalar] { text.append(contentsOf: escape.unicodeScalars) } else { text.append(scalar) }
        }
        return String(text)
    }
}

/// Searches for one ASCII word. The standard library's search builds tables for each call, which cost more than the whole search of a short
/// text.
enum WordSearch {
    /// True if the bytes contain `word`.
    /// - Parameter anyCase: true if capital letters of the bytes count as small ones; the word has none then.
    static func finds(_ word: StaticString, in text: Span<UInt8>, anyCase: Bool = false) -> Bool {
        let length = word.utf8CodeUnitCount
        guard length > 0, text.count >= length else { return length == 0 }
        for start in 0...(text.count - length) {
            var index = 0
            while index < length {
                let byte = text[start + index]
                let isCapital = anyCase && 0x41...0x5A ~= byte
                guard unsafe (isCapital ? byte | 0x20 : byte) == word.utf8Start[index] else { break }
                index += 1
            }
            if index == length { return true }
        }
        return false
    }
}

extension String {
    /// True if the text contains `word`, whose letters are small ones, in any case of ASCII letters.
    package func contains(anyCase word: StaticString) -> Bool {
        WordSearch.finds(word, in: utf8.span, anyCase: true)
    }
}

extension [UInt8] {
    /// True if the bytes contain `word`.
    func holds(_ word: StaticString) -> Bool { WordSearch.finds(word, in: span) }
}
