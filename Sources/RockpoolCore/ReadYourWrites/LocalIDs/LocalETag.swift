// The entity tags of local representations: pending writes, folded onto the server's representation (docs/outbox.md#local-etags,
// docs/outbox.md#reads).
package import HTTPTypes

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

// Conditions on local states: `If-Match: "loc-17"` means "on top of operation 17" (docs/outbox.md#local-etags; RFC 9110 §13.1).
extension HTTPFields {
    /// The local tags of `If-Match` and `If-None-Match`, in their order. Each operation they name precedes this one.
    package var localETags: [LocalETag] {
        [HTTPField.Name.ifMatch, .ifNoneMatch].flatMap { EntityTag.list(in: self[$0] ?? "") }.compactMap { LocalETag($0) }
    }

    /// Returns the fields with local tags replaced by the server's; every other tag stays.
    ///
    /// Where `real` returns nil, `If-Match` is removed as a whole: the client accepted a state that the lane has reached, and the remaining
    /// tags would make the condition fail. So it is for a weak tag, which never matches there (RFC 9110 §13.1.1): the write is compared by
    /// a read before it instead. `If-None-Match` loses that tag only, and is removed when no tag remains.
    package func replacingLocalETags(_ real: (LocalETag) -> EntityTag?) -> HTTPFields {
        var fields = self
        for name in [HTTPField.Name.ifMatch, .ifNoneMatch] {
            let tags = EntityTag.list(in: self[name] ?? "")
            guard tags.contains(where: { LocalETag($0) != nil }) else { continue }
            let replaced = tags.compactMap { tag -> EntityTag? in
                guard let local = LocalETag(tag) else { return tag }
                // A client that writes tags without quotes expects to be understood so.
                return real(local).flatMap { name == .ifMatch && !$0.isStrong ? nil : tag.isStrong || tag.isWeak ? $0 : EntityTag($0.bare) }
            }
            let isKept = name == .ifMatch ? replaced.count == tags.count : !replaced.isEmpty
            fields[name] = isKept ? replaced.map(\.fieldValue).joined(separator: ", ") : nil
        }
        return fields
    }
}
