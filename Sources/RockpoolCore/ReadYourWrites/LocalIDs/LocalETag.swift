// The entity tags of local representations: pending writes, folded onto the server's representation (docs/outbox.md#local-etags,
// docs/outbox.md#reads).

/// `"loc-<seq>"` or `"loc-<seq>-<base>"`: the state after operation `seq`, folded onto the server's representation `base`. The tag changes
/// when either does.
///
/// A weak base is marked by a `w` after the number. A base that is not quoted ASCII (RFC 9110 §8.8.3) is marked by an `x` and written in
/// hexadecimal, so that every base can be restored exactly: `"loc-17w-abc"`, `"loc-17x-616263"`.
package struct LocalETag: Hashable, Sendable {
    /// The sequence of the last operation folded in; positive.
    package var sequence: Int64
    /// The server's own tag, nil where the server had nothing yet or gave none.
    package var base: EntityTag?

    package init(sequence: Int64, base: EntityTag? = nil) {
        self.sequence = sequence
        self.base = base
    }

    /// Parses a local tag; nil for any other tag. A tag that an intermediary made weak is accepted.
    package init?(_ tag: EntityTag) {
        let isQuoted = tag.opaque.utf8.count >= 2 && tag.opaque.hasPrefix("\"") && tag.opaque.hasSuffix("\"")
        let text = isQuoted ? tag.opaque.dropFirst().dropLast() : tag.opaque[...]
        guard text.hasPrefix("loc-") else { return nil }
        let digits = text.dropFirst(4).prefix { $0.isASCII && $0.isNumber }
        guard digits.first != "0", let sequence = Int64(digits) else { return nil }
        self.sequence = sequence
        let rest = text[digits.endIndex...]
        if rest.isEmpty { return }
        guard let dash = rest.firstIndex(of: "-") else { return nil }
        let value = rest[rest.index(after: dash)...]
        switch rest[..<dash] {
        case "": base = EntityTag("\"\(value)\"")
        case "w": base = EntityTag("W/\"\(value)\"")
        case "x":
            guard let tag = Self.text(ofHex: value).flatMap({ EntityTag($0) }) else { return nil }
            base = tag
        default: return nil
        }
    }

    /// Parses a local tag from text: quoted, or the opaque part alone.
    package init?(_ text: some StringProtocol) {
        guard let tag = EntityTag(text) else { return nil }
        self.init(tag)
    }

    /// The tag as an `ETag` field value.
    package var fieldValue: String {
        guard let base else { return "\"loc-\(sequence)\"" }
        guard base.isWellFormed else { return "\"loc-\(sequence)x-\(Self.hex(base.fieldValue))\"" }
        return "\"loc-\(sequence)\(base.isWeak ? "w" : "")-\(base.opaque.dropFirst().dropLast())\""
    }

    private static func hex(_ text: String) -> String {
        text.utf8.map { (Int($0) < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static func text(ofHex hex: Substring) -> String? {
        let digits = hex.utf8.compactMap(FormEncoding.digit)
        guard digits.count == hex.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        let bytes = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension EntityTag {
    /// True if the opaque part is quoted and consists of ASCII `etagc` only (RFC 9110 §8.8.3); text beyond ASCII has several encodings.
    fileprivate var isWellFormed: Bool {
        EntityTag(opaque)?.isStrong == true
            && opaque.utf8.dropFirst().dropLast().allSatisfy { (0x21...0x7E).contains($0) && $0 != FieldByte.quote }
    }
}
