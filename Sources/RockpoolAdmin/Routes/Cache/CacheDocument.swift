// Documents of stored entries (docs/reference/admin-api.md#cache).
import RockpoolCore
import RockpoolStore

/// A stored response as it appears in lists (docs/reference/admin-api.md#cache).
enum CacheDocument {
    static func item(of listing: CacheListing) -> JSONValue {
        [
            "url": .string(listing.url), "method": .string(listing.method), "category": .string(listing.category),
            "status": .integer(listing.status), "bytes": .integer(listing.bytes), "storedAt": .time(listing.storedAt),
            "freshUntil": .time(listing.freshUntil), "lastUsedAt": .time(listing.lastUsedAt), "pinned": .bool(listing.isPinned),
            "identity": .string(listing.isPrivate ? "private" : "shared"), "variants": .integer(listing.variants),
        ]
    }
}
