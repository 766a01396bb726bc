// Documents of stored entries (docs/reference/admin-api.md#cache).
import RockpoolCore
import RockpoolEngine
import RockpoolStore

/// A stored response as it appears in lists (docs/reference/admin-api.md#cache).
enum CacheDocument {
    static func item(of listing: CacheListing, offline: OfflineUse) -> JSONValue {
        let until = offline.end(of: listing)
        return [
            "url": .string(listing.url), "method": .string(listing.method), "category": .string(listing.category),
            "status": .integer(listing.status), "bytes": .integer(listing.bytes), "storedAt": .time(listing.storedAt),
            "freshUntil": .time(listing.freshUntil), "lastUsedAt": .time(listing.lastUsedAt), "pinned": .bool(listing.isPinned),
            "identity": .string(listing.isPrivate ? "private" : "shared"),
            "principal": listing.isPrivate ? .string(listing.identity) : .null, "variants": .integer(listing.variants),
            "hits": .integer(listing.hits),
            "offline": .bool(until.map { $0 > offline.now } ?? true), "offlineUntil": .time(until),
        ]
    }
}
