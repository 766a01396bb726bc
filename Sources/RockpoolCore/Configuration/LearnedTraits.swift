// What a resource that was learned from traffic is known to be, beside what a declaration says (docs/outbox.md#learning).

/// The form of the ids of a collection, as far as they were seen.
package enum IdentifierForm: String, CaseIterable, Sendable, Codable {
    /// Decimal digits.
    case number
    /// 32 hexadecimal digits in five groups.
    case uuid
    /// Anything else.
    case text

    /// The narrowest form that an id has.
    package init(_ id: some StringProtocol) {
        let bytes = Array(id.utf8.prefix(37))
        if !bytes.isEmpty, bytes.count < 20, bytes.allSatisfy(\.isDigit) {
            self = .number
        } else if bytes.count == 36, bytes.enumerated().allSatisfy({ Self.isOfUUID($0.element, at: $0.offset) }) {
            self = .uuid
        } else {
            self = .text
        }
    }

    /// The form that ids of both forms have.
    package func joined(with other: IdentifierForm) -> IdentifierForm { self == other ? self : .text }

    private static func isOfUUID(_ byte: UInt8, at place: Int) -> Bool {
        [8, 13, 18, 23].contains(place) ? byte == UInt8(ascii: "-") : byte.isHexDigit
    }
}

/// The limits of what is known of a learned resource. A path outside them is treated as if nothing was learned.
package struct LearnedTraits: Hashable, Sendable {
    /// The form of the ids of items.
    package var ids: IdentifierForm
    /// Ids that are none, although their paths look like an item's: `search` of `/notes/search`.
    package var others: Set<String>
    /// True if a POST to the collection was seen to make an item.
    package var isCreating: Bool
    /// What the API makes of new items, by the names of members.
    package var made: [String: MadeMember]

    package init(
        ids: IdentifierForm = .text, others: Set<String> = [], isCreating: Bool = false, made: [String: MadeMember] = [:]
    ) {
        (self.ids, self.others, self.isCreating, self.made) = (ids, others, isCreating, made)
    }
}

/// Whether an upstream without declared resources learns them.
package enum UndeclaredResources: String, CaseIterable, Sendable, Codable { case learned, off }

/// What an upstream without declared resources learns beside its traffic.
package struct LearnRule: Hashable, Sendable {
    package var description = DescriptionSource.linked

    package init() {}
}

/// The descriptions of an API that count as evidence.
package enum DescriptionSource: Hashable, Sendable {
    /// Those that the API names and a client has read.
    case linked
    case off
    /// The one at this path or URL, which is fetched.
    case at(String)

    /// Its URL at an origin; nil unless it is fetched from there.
    package func url(at origin: OriginAddress) -> String? {
        guard case .at(let reference) = self else { return nil }
        return URIReference.resolve(reference, origin: origin, target: "/")
    }
}

/// Names that APIs give to members of the same meaning, the first choice first.
package enum CommonMembers {
    /// Members that carry an id.
    package static let ids = ["id", "_id", "uuid", "guid", "key", "slug", "ID", "Id"]
    /// Members that carry the time of the last change.
    package static let changeTimes = [
        "updatedAt", "updated_at", "modifiedAt", "modified_at", "lastModified", "last_modified", "modified", "updated",
    ]
    /// Members that change with each write, for APIs without ETags.
    package static let versions = ["version", "_version", "rev", "_rev", "revision", "lock_version", "lockVersion", "etag", "_etag"]
}

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

// MARK: - PUT

// What an API makes of the members that a PUT leaves out (docs/outbox.md#omitted-members).

/// The members of a resource's items that PUTs have left out, by what the upstream has made of them.
package struct OmittedMembers: Hashable, Sendable {
    /// The most members of an object that are looked at, and the length of their names in bytes.
    package static let memberLimit = 64
    package static let nameLength = 128

    /// Those that were there afterwards, as before.
    package private(set) var kept: Set<String> = []
    /// Those that were gone afterwards.
    package private(set) var gone: Set<String> = []

    package init() {}

    /// True if the upstream keeps a member. One of which nothing was seen follows the others, unless a PUT has removed one of them.
    func keeps(_ name: String) -> Bool { kept.contains(name) || gone.isEmpty && !kept.isEmpty }

    /// Takes what a later PUT has shown. Above the limit nothing new is taken.
    /// - Returns: true if something else is known than before.
    mutating func take(_ newer: OmittedMembers) -> Bool {
        let before = self
        kept = kept.subtracting(newer.gone).union(newer.kept)
        gone = gone.subtracting(newer.kept).union(newer.gone)
        if kept.count + gone.count > 4 * Self.memberLimit { self = before }
        return self != before
    }

    // MARK: - Storing

    /// The form in which it is stored.
    var json: JSONValue {
        let names = { (set: Set<String>) in JSONValue.array(set.sorted().map { .string($0) }) }
        return ["kept": names(kept), "gone": names(gone)]
    }

    /// Reads the stored form.
    package init(json: JSONValue) {
        (kept, gone) = (Set((json["kept"]?.array ?? []).compactMap(\.string)), Set((json["gone"]?.array ?? []).compactMap(\.string)))
    }
}

// MARK: - What routes use

/// What traffic has shown of one upstream, as routes use it.
package struct LearnedUpstream: Hashable, Sendable {
    /// The resources of an upstream that declares none.
    package var resources: [Resource]
    /// What is known of PUTs, by the label of the resource.
    package var omitted: [String: OmittedMembers]

    package init(resources: [Resource] = [], omitted: [String: OmittedMembers] = [:]) {
        (self.resources, self.omitted) = (resources, omitted)
    }

    /// Gives an upstream what was learned of it.
    func describe(_ upstream: inout Upstream) {
        if upstream.learnsResources, !resources.isEmpty { upstream.resources = resources }
        for (index, resource) in upstream.resources.enumerated() {
            if let known = omitted[resource.label] { upstream.resources[index].omitted = known }
        }
    }
}
