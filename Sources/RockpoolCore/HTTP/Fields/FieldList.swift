// Members of list-based fields, and access to field values by name (RFC 9110 §5.3, §5.6.1).
import HTTPTypes

enum FieldList {
    /// The members of a comma-separated value, without surrounding whitespace and without empty ones. Commas within quoted strings do not
    /// separate.
    static func members(of value: String) -> [Substring] {
        var members: [Substring] = []
        let bytes = value.utf8
        var start = bytes.startIndex
        var index = start
        var isQuoted = false
        while index < bytes.endIndex {
            let byte = bytes[index]
            if isQuoted && byte == FieldByte.backslash {
                index = bytes.index(after: index)
                if index == bytes.endIndex { break }
            } else if byte == FieldByte.quote {
                isQuoted.toggle()
            } else if byte == FieldByte.comma && !isQuoted {
                append(value[start..<index], to: &members)
                start = bytes.index(after: index)
            }
            index = bytes.index(after: index)
        }
        append(value[start...], to: &members)
        return members
    }

    /// `text` without spaces and tabs at either end.
    static func trimmed(_ text: Substring) -> Substring {
        var bytes = text.utf8
        while let first = bytes.first, FieldByte.isSpace(first) { bytes.removeFirst() }
        while let last = bytes.last, FieldByte.isSpace(last) { bytes.removeLast() }
        return Substring(bytes)
    }

    private static func append(_ member: Substring, to members: inout [Substring]) {
        let member = trimmed(member)
        if !member.isEmpty { members.append(member) }
    }
}

extension HTTPFields {
    /// The combined value of the field with this lower-case name; nil if absent. Lines of `cookie` are joined by `; `, other fields by `,
    /// `. A single line, the usual case on a cache hit, is not copied.
    func value(of canonicalName: String) -> String? {
        var value: String?
        for field in self where field.name.canonicalName == canonicalName {
            guard let earlier = value else {
                value = field.value
                continue
            }
            value = earlier + (canonicalName == "cookie" ? "; " : ", ") + field.value
        }
        return value
    }

    /// The value of a field that may occur once; nil if it is absent or repeated.
    func single(_ name: HTTPField.Name) -> String? {
        var value: String?
        for field in self where field.name == name {
            if value != nil { return nil }
            value = field.value
        }
        return value
    }
}
