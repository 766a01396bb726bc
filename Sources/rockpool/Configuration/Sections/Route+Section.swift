// The keys of one route and of one resource (docs/reference/configuration.md#routes, `routes`, `resources`).
import RockpoolCore

extension Route {
    static let section = Section<Route>([
        .value("match", \.match, .routePattern).required,
        .optional("category", \.category, .name),
        .optional("strategy", \.strategy, .word),
        .value("queue", \.queue, .word),
        .value("store", \.store, .word),
        .value("cache", \.cache, .word),
        .optional("no_vary_search", \.searchVariance, .searchVariance),
    ])
}

extension Resource {
    static let section = Section<Resource>([
        .value("collection", \.collection, .urlPath).required,
        .optional("item", \.item, .itemPath),
        .value("items", \.items, .pointer),
        .value("envelope", \.envelope, .pointer),
        .value("id", \.id, .pointer),
        .value("version", \.version, .version),
        .optional("updated_at", \.updatedAt, .pointer),
        .value("offline_response", \.offlineResponse, .word),
        .value("conflict", \.conflict, .word),
        .map("fields", \.fields, keys: .pointer, values: .fieldStrategy),
        .optionalSection("delta", \.delta, Delta.section, blank: Delta(query: "", cursor: "")),
        .optionalSection("sync", \.sync, Sync.section, blank: Sync()),
    ])
}

extension Resource.Delta {
    static let section = Section<Resource.Delta>([
        .value("query", \.query, .deltaQuery).required,
        .value("cursor", \.cursor, .pointer).required,
        .optional("deleted", \.deleted, .pointer),
        .value("every", \.every, .span),
        .value("full_every", \.fullEvery, .span),
    ])
}

extension Resource.Sync {
    static let section = Section<Resource.Sync>([
        .optional("push", \.push, .urlPath),
        .optional("pull", \.pull, .pullTarget),
        .value("items", \.items, .pointer),
        .value("tombstones", \.tombstones, .pointer),
        .value("cursor", \.cursor, .pointer),
        .value("more", \.more, .pointer),
    ])
}
