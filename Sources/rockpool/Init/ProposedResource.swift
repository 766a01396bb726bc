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
    /// The findings that led to it, each a line of comment.
    var evidence: [String] = []

    /// Members that carry the time of the last change, the first choice first.
    static let changeTimes = [
        "updatedAt", "updated_at", "modifiedAt", "modified_at", "lastModified", "last_modified", "modified", "updated",
    ]
    /// Members that carry an id, the first choice first.
    static let ids = ["id", "_id", "uuid", "guid", "key", "slug"]

    /// The pointer of the first known member.
    static func pointer(to candidates: [String], among names: [String]) -> String? {
        candidates.first { names.contains($0) }.map { "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1") }
    }
}

/// An API as `rockpool init` proposes it.
struct ProposedAPI: Hashable {
    var resources: [ProposedResource] = []
    /// The places where nothing could be proposed, each a line of comment.
    var notes: [String] = []
    /// The source of the resources: a URL or a file.
    var source: String?
}
