// A resource of an API as `rockpool init` proposes it, with the reason for each part (docs/guide/offline-app.md).
import RockpoolCore

/// One entry of `resources`, with its evidence.
struct ProposedResource: Hashable {
    var collection: String
    var item: String
    var items = ""
    var envelope = ""
    var id = "/id"
    var updatedAt: String?
    /// False where too little is known for replies as of the API.
    var isOptimistic = true
    /// True if the API forbids to store it (`no-store`).
    var isNoStore = false
    /// `etag`, or the pointer of the member that changes with each write.
    var version = "etag"
    /// True if an entry was answered without an ETag.
    var lacksETag = false
    /// The findings that led to it, each a line of comment.
    var evidence: [String] = []

    /// The entry as values.
    var document: ConfigDocument {
        let all: [(String, String?)] = [
            ("collection", collection), ("item", item), ("items", items), ("envelope", envelope), ("id", id), ("version", version),
            ("updated_at", updatedAt), ("offline_response", isOptimistic ? "optimistic" : nil),
        ]
        return .map(all.compactMap { name, value in value.map { .init(name, .text($0)) } })
    }

    /// True if every value may be written (`ForeignText`).
    var isPlain: Bool { [collection, item, items, envelope, id, version, updatedAt ?? ""].allSatisfy(ForeignText.isPlain) }

    /// Members that carry the time of the last change, the first choice first.
    static let changeTimes = [
        "updatedAt", "updated_at", "modifiedAt", "modified_at", "lastModified", "last_modified", "modified", "updated",
    ]
    /// Members that change with each write, for APIs without ETags.
    static let versions = ["version", "_version", "rev", "_rev", "revision", "lock_version", "lockVersion", "etag", "_etag"]
    /// Members that carry an id, the first choice first.
    static let ids = ["id", "_id", "uuid", "guid", "key", "slug"]

    /// The pointer of the first known member.
    static func pointer(to candidates: [String], among names: [String]) -> String? {
        candidates.first { names.contains($0) }.map { "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1") }
    }
}

/// An API as `rockpool init` proposes it.
struct ProposedAPI: Hashable {
    /// The most resources of one proposal.
    private static let mostResources = 1000

    private(set) var resources: [ProposedResource] = []
    /// The places where nothing could be proposed, each a line of comment.
    var notes: [String] = []
    /// The source of the resources: a URL or a file.
    var source: String?

    /// Adds a resource, or notes why it is not proposed.
    mutating func add(_ resource: ProposedResource) {
        guard resource.isPlain else { return notes.append("\(resource.collection): a name has characters that are not written to a file") }
        guard resources.count < Self.mostResources else { return notes.append("\(resource.collection): too many resources") }
        resources.append(resource)
    }

    /// Leaves out the resources of these collections.
    mutating func remove(_ collections: Set<String>) { resources.removeAll { collections.contains($0.collection) } }
}
