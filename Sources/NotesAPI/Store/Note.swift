// One note: the members that clients write, and those that the server maintains.
package import RockpoolCore

/// A note. Clients own every member except `id`, `createdAt`, `updatedAt` and `version`.
package struct Note: Hashable, Sendable {
    /// Assigned by the server, a decimal number.
    package let id: String
    /// The members that clients own, among them `title`, `body`, `status`, `tags` and `count`.
    package var members: JSONObject
    /// When the note was created.
    package let createdAt: Timestamp
    /// When this version was written; no two changes of a server have the same time.
    package var updatedAt: Timestamp
    /// 1, incremented by every change.
    package var version: Int64

    /// The server's own members; client values for them are ignored.
    static let managed = ["id", "createdAt", "updatedAt", "version"]

    init(id: String, members: JSONObject, createdAt: Timestamp) {
        self.id = id
        self.members = Self.clientMembers(of: members)
        self.createdAt = createdAt
        updatedAt = createdAt
        version = 1
    }

    /// The note as a response body.
    package var representation: JSONValue {
        var all = JSONObject([("id", .string(id))])
        for (name, value) in members { all[name] = value }
        all["createdAt"] = .string(RFC3339.format(createdAt))
        all["updatedAt"] = .string(RFC3339.format(updatedAt))
        all["version"] = .number(JSONNumber(version))
        return .object(all)
    }

    /// A strong validator: different for every version of every note.
    package var etag: String { "\"\(id)-\(version)\"" }

    mutating func replace(_ members: JSONObject, at moment: Timestamp) {
        self.members = Self.clientMembers(of: members)
        updatedAt = moment
        version += 1
    }

    /// The error in a note's members, as a sentence; nil if they are valid.
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

    private static func clientMembers(of members: JSONObject) -> JSONObject {
        var own = defaults
        for (name, value) in members where !managed.contains(name) { own[name] = value }
        return own
    }
}
