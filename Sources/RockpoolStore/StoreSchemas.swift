// The versions of the two databases that this program writes (docs/storage.md#database-rules).

/// The newest known version of each schema. A database of a newer one is refused, or for the cache set aside.
package enum StoreSchemas {
    /// Of `data.sqlite`.
    package static var data: Int { DataSchema.identity.migrations.count }
    /// Of `cache.sqlite`.
    package static var cache: Int { CacheSchema.identity.migrations.count }
}
