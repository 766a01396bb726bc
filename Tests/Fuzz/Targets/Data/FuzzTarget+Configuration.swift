// Configuration values and encodings: a value that was parsed and written is parsed as the same value.
import RockpoolCore

extension FuzzTarget {
    /// A line; the encodings take all bytes.
    static func configuration(_ input: FuzzInput, _ bytes: [UInt8]) throws(BrokenProperty) {
        let text = input.text(0)
        if let size = try? ByteCount(parsing: text) {
            try hold((try? ByteCount(parsing: size.description)) == size && size.bytes >= 0, "a size is read back: \(size)")
            try hold((try? ByteCount(parsing: size.rounded)).map { $0 <= size } ?? false, "a size is never rounded up: \(size.rounded)")
        }
        if let span = try? TimeSpan(parsing: text) {
            try hold((try? TimeSpan(parsing: span.description)) == span && span >= .zero, "a span is read back: \(span)")
        }
        _ = PathPattern(text).matches(method: "GET", path: input.text(1))
        _ = FieldStrategy(text)
        _ = TokenSubject(authorization: "Bearer " + text)
        try hold(Base64URL.decoded(Base64URL.encoded(bytes).utf8) == bytes, "base64url is read back")
        try hold(Base64.decode(Base64.encode(bytes)) == bytes, "base64 is read back")
        if let word = unquoted(ShellWord.quote(bytes)) { try hold(word == bytes, "a shell reads the word that was quoted") }
        if !text.isEmpty {
            let field = IdempotencyKey.fieldValue(text, format: .quoted)
            try hold(IdempotencyKey.parse(field).map { areSame($0, text) } ?? false, "a key is read back")
        }
        let tags = EntityTag.list(in: text)
        let again = EntityTag.list(in: tags.map(\.fieldValue).joined(separator: ", "))
        if tags.allSatisfy(\.isStrong) { try hold(again == tags, "a list of tags is read back") }
        for (a, b) in zip(tags, tags.dropFirst()) where a.matchesStrongly(b) {
            try hold(areSame(a.opaque, b.opaque), "tags that match are the same bytes")
        }
    }

    /// The shell's interpretation of single quotes and escaped ones; nil for a command, which must be inside its quotes.
    private static func unquoted(_ word: String) -> [UInt8]? {
        if word.utf8.starts(with: #""$(printf '%b' '"#.utf8) { return nil }
        var (bytes, isQuoted, isEscaped): ([UInt8], Bool, Bool) = ([], false, false)
        for byte in word.utf8 {
            switch byte {
            case _ where isEscaped:
                bytes.append(byte)
                isEscaped = false
            case UInt8(ascii: "'"): isQuoted.toggle()
            case UInt8(ascii: "\\") where !isQuoted: isEscaped = true
            case _ where isQuoted: bytes.append(byte)
            default: return []  // outside the quotes
            }
        }
        return isQuoted || isEscaped ? [] : bytes
    }
}
