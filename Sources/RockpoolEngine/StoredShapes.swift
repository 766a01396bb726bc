// The forms of stored JSON documents, those of identities included, without their values (docs/reference/admin-api.md#cache).
package import RockpoolCore
package import RockpoolStore

/// Reads the stored responses below a URL for `rockpool learn`.
package struct StoredShapes: Sendable {
    /// The most documents, and the most bytes of one.
    private static let limit = 10_000
    private static let bodyLimit = Int.mib(4)
    private static let page = 64

    private let cache: CacheStore
    private let lookup: EntryLookup

    package init(cache: CacheStore, reads: ReadPipeline) { (self.cache, lookup) = (cache, reads.lookup) }

    /// `{"path", "shape"}` of each successful read of a JSON document whose URL begins with `prefix`, and the number of documents that could
    /// not be read: too long, or in an unknown coding.
    package func documents(prefix: String) async throws -> (items: [JSONValue], unread: Int) {
        var items: [JSONValue] = []
        var (last, unread) = (Int64(0), 0)
        while items.count < Self.limit {
            let entries = try await cache.entries(prefix: prefix, after: last, limit: Self.page)
            guard let end = entries.last?.id else { break }
            last = end
            for entry in entries where entry.key.method == "GET" && entry.response.head.status == 200 && entry.response.part == nil {
                guard MediaType.isJSON(entry.response.head.fields) else { continue }
                guard let bytes = try await lookup.content(of: entry, limit: Self.bodyLimit), let document = try? JSONValue.parse(bytes)
                else {
                    unread += 1
                    continue
                }
                let path = String(entry.key.target.prefix { $0 != "?" })
                items.append(["path": .string(path), "shape": document.shape])
            }
        }
        return (items, unread)
    }
}

extension JSONValue {
    /// The names of members and the nesting, without texts, numbers and ids: scalars are null, and an array holds its first object, or null if
    /// an element is none. Deep and wide documents are cut off.
    fileprivate var shape: JSONValue { shape(depth: 0) }

    private func shape(depth: Int) -> JSONValue {
        guard depth < 8 else { return .null }
        if let members = object {
            return .object(JSONObject(members.prefix(64).map { ($0.name, $0.value.shape(depth: depth + 1)) }))
        }
        guard let elements = array else { return .null }
        guard let first = elements.first else { return .array([]) }
        return .array([elements.allSatisfy { $0.object != nil } ? first.shape(depth: depth + 1) : .null])
    }
}
