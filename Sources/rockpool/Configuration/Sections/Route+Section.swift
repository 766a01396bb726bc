// The keys of one route and of one resource (docs/reference/configuration.md#routes, `routes`, `resources`).
import RockpoolCore

extension Route {
    static let section = Section<Route>([
        .value("match", field: \.match, as: .routePattern).required,
        .optional("category", field: \.category, as: .name),
        .optional("strategy", field: \.strategy, as: .word),
        .value("queue", field: \.queue, as: .word),
        .value("store", field: \.store, as: .word),
        .value("cache", field: \.cache, as: .word),
        .value("kind", field: \.kind, as: .word),
        .optional("lane", field: \.lane, as: .pointer),
        .value("offline_response", field: \.offlineResponse, as: .word),
        .optionalSection("timeouts", field: \.timeouts, of: RouteTimeouts.section, blank: RouteTimeouts()),
        .optional("no_vary_search", field: \.searchVariance, as: .searchVariance),
        .optionalSection("success", field: \.success, of: SuccessRule.section, blank: SuccessRule()),
        .value("logout", field: \.logout, as: .flag),
    ])
}

extension RouteTimeouts {
    static let section = Section<RouteTimeouts>([
        .optional("first_byte", field: \.firstByte, as: .span),
        .value("idle", field: \.idle, as: .duration),
    ])
}

extension Resource {
    static let section = Section<Resource>([
        .value("collection", field: \.collection, as: .urlPath).required,
        .optional("item", field: \.item, as: .itemPath),
        .value("items", field: \.items, as: .pointer),
        .value("envelope", field: \.envelope, as: .pointer),
        .value("id", field: \.id, as: .pointer),
        .value("version", field: \.version, as: .version),
        .optional("updated_at", field: \.updatedAt, as: .pointer),
        .value("offline_response", field: \.offlineResponse, as: .word),
        .value("conflict", field: \.conflict, as: .word),
        .map("fields", field: \.fields, keys: .pointer, values: .fieldStrategy),
        .optionalSection("delta", field: \.delta, of: Delta.section, blank: Delta(query: "", cursor: "")),
        .optionalSection("sync", field: \.sync, of: Sync.section, blank: Sync()),
        .optionalSection("success", field: \.success, of: SuccessRule.section, blank: SuccessRule()),
    ])
}

extension SuccessRule {
    static let section = Section<SuccessRule>([
        .list("status", field: \.status, of: .whole(in: 200...299)),
        .optional("pointer", field: \.pointer, as: .pointer),
        .optional("absent", field: \.absent, as: .flag),
        .optional("equals", field: \.equals, as: .jsonScalar),
    ])
}

extension Resource.Delta {
    static let section = Section<Resource.Delta>([
        .value("query", field: \.query, as: .deltaQuery).required,
        .value("cursor", field: \.cursor, as: .pointer).required,
        .optional("deleted", field: \.deleted, as: .pointer),
        .value("every", field: \.every, as: .span),
        .value("full_every", field: \.fullEvery, as: .span),
    ])
}

extension Resource.Sync {
    static let section = Section<Resource.Sync>([
        .optional("push", field: \.push, as: .urlPath),
        .optional("pull", field: \.pull, as: .pullTarget),
        .value("items", field: \.items, as: .pointer),
        .value("tombstones", field: \.tombstones, as: .pointer),
        .value("cursor", field: \.cursor, as: .pointer),
        .value("more", field: \.more, as: .pointer),
    ])
}
