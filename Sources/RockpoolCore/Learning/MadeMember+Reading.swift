// What an API's answer to a create shows of the members that the API makes (docs/outbox.md#learning).

extension MadeMember {
    /// The longest text of which a form is taken, in bytes, and the longest time in milliseconds between an answer and a time in it.
    private static let length = 512
    private static let delay: Int64 = 5 * 60 * 1000

    /// The form of a value; nil if it cannot be made again.
    /// - Parameter answeredAt: the time of the answer by the clock of its server.
    init?(_ value: JSONValue, id: String, answeredAt: Timestamp?) {
        guard let text = value.string, text.utf8.count <= Self.length else { return nil }
        if let moment = RFC3339.parse(text) {
            guard let answeredAt, abs(moment.milliseconds - answeredAt.milliseconds) < Self.delay, let time = Self.time(like: text) else {
                return nil
            }
            self = time
        } else if let template = Self.template(of: text, id: id) {
            self = .link(template)
        } else {
            return nil
        }
    }

    private static func time(like text: String) -> MadeMember? {
        let rest = text.dropFirst(19)
        guard text.dropFirst(10).first == "T" else { return nil }
        let digits = rest.first == "." ? rest.dropFirst().prefix { $0.isNumber }.count : 0
        let offset = String(rest.dropFirst(digits == 0 ? 0 : digits + 1))
        return digits <= 9 && seconds(of: offset) != nil ? .time(digits: digits, offset: offset) : nil
    }

    /// The URL with `{id}` in place of the only part of its path or query that is the id; nil for any other text.
    static func template(of text: String, id: String) -> String? {
        guard !text.contains(where: { "{} ".contains($0) }), !id.isEmpty, text.utf8.count <= length else { return nil }
        let start: String.Index
        if text.hasPrefix("/"), !text.hasPrefix("//") {
            start = text.startIndex
        } else {
            guard text.hasPrefix("http://") || text.hasPrefix("https://"), let authority = text.firstRange(of: "://")?.upperBound,
                let path = text[authority...].firstIndex(of: "/")
            else { return nil }
            start = path
        }
        let written = ServerID(text: id).percentEncoded
        let found = text[start...].ranges(of: written).filter { range in
            guard range.lowerBound > start, "/=".contains(text[text.index(before: range.lowerBound)]) else { return false }
            return range.upperBound == text.endIndex || "/?#&.".contains(text[range.upperBound])
        }
        guard found.count == 1 else { return nil }
        var template = text
        template.replaceSubrange(found[0], with: "{id}")
        return template
    }

    /// What an API has made of an entity, by the names of members that its create had not sent.
    static func all(in object: JSONObject, written: Set<String>, id: String, answeredAt: Timestamp?) -> [String: MadeMember] {
        guard !written.isEmpty else { return [:] }
        let made = object.prefix(ReadList.memberLimit).filter { !written.contains($0.name) && $0.name.utf8.count <= ReadList.nameLength }
        return made.reduce(into: [:]) { all, member in
            all[member.name] = MadeMember(member.value, id: id, answeredAt: answeredAt)
        }
    }
}
