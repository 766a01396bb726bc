// The keys of `storage`, `cleanup` and of one category (docs/reference/configuration.md#storage, docs/storage.md#limits-and-shares,
// docs/storage.md#cleanup).
import RockpoolCore

extension StorageSettings {
    static let section = Section<StorageSettings>([
        .value("cache_dir", field: \.cacheDir, as: .path),
        .value("state_dir", field: \.stateDir, as: .path),
        .optional("limit", field: \.limit, as: .limit),
        .value("cache_limit", field: \.cacheBound, as: .bound),
        .value("data_limit", field: \.dataBound, as: .bound),
        .value("min_free", field: \.minFree, as: .size),
        .value("memory_limit", field: \.memoryLimit, as: .size),
        .value("pin_cap", field: \.pinCapPercent, as: .percent),
        .value("principal_share", field: \.principalSharePercent, as: .share),
        .value("unproved_share", field: \.unprovedSharePercent, as: .percent),
        .value("encrypt", field: \.encrypt, as: .word),
        .optional("key_file", field: \.keyFile, as: .path),
    ])
}

extension OutboxSettings {
    static let section = Section<OutboxSettings>([
        .value("store", field: \.store, as: .word).consented,
        .optional("url", field: \.url, as: .databaseURL).consented,
        .optional("url_file", field: \.urlFile, as: .path),
        .optional("node", field: \.node, as: .name),
        .value("require_synchronous", field: \.requiresSynchronous, as: .flag),
        .value("when_unreachable", field: \.whenUnreachable, as: .word),
    ])
}

extension CleanupSettings {
    static let section = Section<CleanupSettings>([
        .value("interval", field: \.interval, as: .span),
        .value("expired_after", field: \.expiredAfter, as: .duration),
        .value("failed_after", field: \.failedAfter, as: .duration),
        .value("unproved_after", field: \.unprovedAfter, as: .duration),
        .value("vacuum_when_free", field: \.vacuumWhenFreePercent, as: .percent),
    ])
}

extension CacheCategory {
    static let section = Section<CacheCategory>([
        .value("ttl", field: \.ttl, as: .duration),
        .value("offline_window", field: \.offlineWindow, as: .duration),
        .value("guarantee", field: \.guaranteePercent, as: .percent),
        .value("share", field: \.sharePercent, as: .percent),
        .value("weight", field: \.weight, as: .whole(in: 1...1000)),
        .optional("max_object", field: \.maxObject, as: .size),
        .value("min_uses", field: \.minUses, as: .whole(in: 1...100)),
    ])
}
