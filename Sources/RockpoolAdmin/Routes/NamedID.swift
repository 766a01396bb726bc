// Ids of operations and conflicts, named in full or by a part that no other has (docs/reference/admin-api.md#ids).
import RockpoolCore
import RockpoolStore

/// The id in a path of the admin API.
enum NamedID {
    /// The least characters of a part: shorter ones are typing errors more often than names.
    private static let shortest = 4
    /// The most ids that the answer to an ambiguous part lists.
    private static let listed = 5

    /// Returns the id that `name` stands for: a whole id, or the beginning or end of exactly one.
    /// - Returns: `name` itself if nothing matches it; nil for nil.
    /// - Throws: 409 with the ids if several match; `DataStoreError`.
    static func whole(_ name: String?, of kind: DataStore.IdentifiedKind, in data: DataStore) async throws -> String? {
        guard let name, name.utf8.count >= shortest, name.utf8.count < 36 else { return name }
        let found = try await data.ids(kind, matching: name.lowercased(), limit: listed + 1)
        guard found.count > 1 else { return found.first ?? name }
        let shown = found.prefix(listed).joined(separator: ", ") + (found.count > listed ? ", …" : "")
        throw Refusal.conflict("\(name) is a part of several ids; the beginning of an id is its time, so name its end: \(shown)")
    }
}
