// The keys of `storage`, `cleanup` and of one category (docs/reference/configuration.md#storage, docs/storage.md#limits-and-shares,
// docs/storage.md#cleanup).
import RockpoolCore

extension StorageSettings {
    static let section = Section<StorageSettings>([
        .value("cache_dir", \.cacheDir, .path),
        .value("state_dir", \.stateDir, .path),
        .value("cache_limit", \.cacheLimit, .size),
        .value("data_limit", \.dataLimit, .size),
        .value("min_free", \.minFree, .size),
        .value("memory_limit", \.memoryLimit, .size),
        .value("pin_cap", \.pinCapPercent, .percent),
        .value("principal_share", \.principalSharePercent, .share),
        .value("unproved_share", \.unprovedSharePercent, .percent),
        .value("encrypt", \.encrypt, .word),
        .optional("key_file", \.keyFile, .path),
    ])
}

extension CleanupSettings {
    static let section = Section<CleanupSettings>([
        .value("interval", \.interval, .span),
        .value("expired_after", \.expiredAfter, .duration),
        .value("failed_after", \.failedAfter, .duration),
        .value("unproved_after", \.unprovedAfter, .duration),
        .value("vacuum_when_free", \.vacuumWhenFreePercent, .percent),
    ])
}

extension CacheCategory {
    static let section = Section<CacheCategory>([
        .value("ttl", \.ttl, .duration),
        .value("offline_window", \.offlineWindow, .duration),
        .value("guarantee", \.guaranteePercent, .percent),
        .value("share", \.sharePercent, .percent),
        .value("weight", \.weight, .whole(1...1000)),
        .optional("max_object", \.maxObject, .size),
    ])
}
