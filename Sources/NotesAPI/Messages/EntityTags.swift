// `If-Match` and `If-None-Match`: lists of entity-tags or `*` (RFC 9110 §8.8.3, §13.1.1, §13.1.2).

enum EntityTags: Hashable {
    case any
    case tags([Substring])

    init(_ field: String) {
        if field.trimmingSpaces == "*" {
            self = .any
            return
        }
        var tags: [Substring] = []
        var rest = field[...]
        while let open = rest.firstIndex(of: "\"") {
            let isWeak = rest[..<open].hasSuffix("W/")
            guard let close = rest[rest.index(after: open)...].firstIndex(of: "\"") else { break }
            let start = isWeak ? rest.index(open, offsetBy: -2) : open
            tags.append(rest[start...close])
            rest = rest[rest.index(after: close)...]
        }
        self = .tags(tags)
    }

    /// Strong comparison, for `If-Match`: a weak tag matches nothing.
    func strongly(match etag: String) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): !etag.hasPrefix("W/") && tags.contains { $0 == etag }
        }
    }

    /// Weak comparison, for `If-None-Match`.
    func weakly(match etag: String) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tags.contains { Self.opaque($0) == Self.opaque(etag[...]) }
        }
    }

    private static func opaque(_ tag: Substring) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag }
}

extension String {
    fileprivate var trimmingSpaces: Substring { drop { $0 == " " }.prefix { $0 != " " } }
}
