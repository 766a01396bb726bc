// A resource of an API as `rockpool init` proposes it, with the reason for each part (docs/guide/offline-app.md).
import RockpoolCore

/// One entry of `resources`, with its evidence.
struct ProposedResource: Hashable {
    var collection: String
    var item: String
    var items = ""
    /// The object within an entry of the list.
    var element = ""
    var envelope = ""
    /// The object within an entry's object that writes carry alone.
    var content = ""
    /// The format of the API; nil for none of those that are known.
    var profile: Profile?
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
            ("collection", collection), ("profile", profile?.rawValue), ("item", item), ("items", items),
            ("element", element.isEmpty && profile == nil ? nil : element), ("envelope", envelope),
            ("content", content.isEmpty ? nil : content), ("id", id), ("version", version),
            ("updated_at", updatedAt), ("offline_response", isOptimistic ? "optimistic" : nil),
        ]
        return .map(all.compactMap { name, value in value.map { .init(name, .text($0)) } })
    }

    /// True if every value may be written (`ForeignText`).
    var isPlain: Bool {
        [collection, item, items, element, envelope, content, id, version, updatedAt ?? ""].allSatisfy(ForeignText.isPlain)
    }

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
