// Members that an API makes of a new entity, where they can be made in its place (docs/outbox.md#learning).

/// The form of a member that the API's own answers to creates had, although no create had sent it.
package enum MadeMember: Hashable, Sendable {
    /// The time of the create in RFC 3339: the digits behind the second, and the offset as it is written.
    case time(digits: Int, offset: String)
    /// A URL; `{id}` stands for the id.
    case link(String)

    /// The seconds of an offset; nil for a text that is none.
    static func seconds(of offset: String) -> Int64? {
        if offset == "Z" { return 0 }
        let parts = offset.dropFirst().split(separator: ":").compactMap { Int64($0) }
        guard offset.count == 6, parts.count == 2, let sign = offset.first, sign == "+" || sign == "-" else { return nil }
        return (sign == "-" ? -1 : 1) * (parts[0] * 3600 + parts[1] * 60)
    }

    /// The form as it is stored.
    var text: String {
        switch self {
        case .time(let digits, let offset): "time \(digits) \(offset)"
        case .link(let template): "link \(template)"
        }
    }

    /// Reads the stored form; nil if it is none.
    init?(text: String) {
        let words = text.split(separator: " ").map { String($0) }
        switch words.first {
        case "time" where words.count == 3:
            guard let digits = Int(words[1]), 0...9 ~= digits, Self.seconds(of: words[2]) != nil else { return nil }
            self = .time(digits: digits, offset: words[2])
        case "link" where words.count == 2 && words[1].contains("{id}"): self = .link(words[1])
        default: return nil
        }
    }
}
