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
