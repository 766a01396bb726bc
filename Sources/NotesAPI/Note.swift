// One note: what its clients wrote, and what the server keeps of it.
package import RockpoolCore

/// A note. Its clients own every member except `id`, `createdAt`, `updatedAt` and `version`.
package struct Note: Hashable, Sendable {
    /// Given by the server, a number in decimal.
    package let id: String
    /// The members clients own, `title`, `body`, `status`, `tags` and `count` among them.
    package var members: JSONObject
    /// When its first version came.
    package let createdAt: Timestamp
    /// When this version came; no two changes of a server share a moment.
    package var updatedAt: Timestamp
    /// 1, then one more with every change.
    package var version: Int64

    /// The server's own members; a client's values for them are ignored.
    static let managed = ["id", "createdAt", "updatedAt", "version"]

    init(id: String, members: JSONObject, createdAt: Timestamp) {
        self.id = id
        self.members = Self.clientMembers(members)
        self.createdAt = createdAt
        updatedAt = createdAt
        version = 1
    }

    /// The note as it is sent.
    package var representation: JSONValue {
        var all = JSONObject([("id", .string(id))])
        for (name, value) in members { all[name] = value }
        all["createdAt"] = .string(RFC3339.format(createdAt))
        all["updatedAt"] = .string(RFC3339.format(updatedAt))
        all["version"] = .number(JSONNumber(version))
        return .object(all)
    }

    /// A strong validator: another for every version of every note.
    package var etag: String { "\"\(id)-\(version)\"" }

    mutating func replace(_ members: JSONObject, at moment: Timestamp) {
        self.members = Self.clientMembers(members)
        updatedAt = moment
        version += 1
    }

    /// What is wrong with a note's members, in words; nil when nothing is.
    static func complaint(about members: JSONObject) -> String? {
        for name in ["title", "body", "status"] where members[name].map({ $0.string == nil }) ?? false {
            return "\(name) must be a string"
        }
        if let tags = members["tags"], tags.array?.allSatisfy({ $0.string != nil }) != true { return "tags must be an array of strings" }
        if let count = members["count"], count.number == nil { return "count must be a number" }
        return nil
    }

    private static let defaults = JSONObject([
        ("title", .string("")), ("body", .string("")), ("status", .string("open")), ("tags", .array([])), ("count", .number(JSONNumber(0))),
    ])

    private static func clientMembers(_ members: JSONObject) -> JSONObject {
        var own = defaults
        for (name, value) in members where !managed.contains(name) { own[name] = value }
        return own
    }
}
