// The sync status of each resource: cached, at the upstream, pending, in conflict
// (docs/reference/admin-api.md#sync `/v1/entities`, docs/guide/sync.md, F1).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension OutboxCommands {
    /// Returns the status of every declared or learned resource, in the order of the configuration.
    /// - Throws: the error of a store that cannot be read.
    package func entities() async throws -> [ResourceSyncStatus] {
        let open = Dictionary(grouping: try await data.openOperations()) { operation in
            [operation.upstream, active.routes.plan(for: operation.request).entity?.resource?.label ?? ""]
        }
        var standings: [ResourceSyncStatus] = []
        for upstream in active.routes.upstreams where upstream.isDeclared {
            for resource in upstream.resources {
                var standing = ResourceSyncStatus(upstream: upstream.name, resource: resource.label)
                let operations = open[[upstream.name, resource.label], default: []]
                standing.pending = operations.count { $0.state != .dead }
                standing.conflicts = operations.count { $0.state == .conflicted }
                (standing.strategy, standing.fields) = (resource.conflict, resource.fields)
                let writes = Dictionary(grouping: operations.filter { $0.state != .dead }) { $0.entity ?? $0.id }
                for state in writes.values.compactMap({ EntityState.of($0) }) { standing.states[state, default: 0] += 1 }
                let outdated = try await itemIDs(of: resource, upstream: upstream, isOutdated: true)
                standing.states[.pendingPull] = outdated.subtracting(operations.compactMap(\.entityID)).count
                let pulled = try await data.pulledScopes(prefix: "\(upstream.name)|\(resource.collection)|")
                let latest = pulled.max { ($0.syncedAt ?? .distantPast) < ($1.syncedAt ?? .distantPast) }
                (standing.lastSync, standing.serverCount) = (latest?.syncedAt, latest?.serverCount)
                standing.cached = try await cachedIDs(of: resource, upstream: upstream).count
                standings.append(standing)
            }
        }
        return standings
    }

    /// Returns the ids of the entities that are stored as items.
    /// - Parameter isOutdated: true for those alone whose copy is marked as out of date.
    private func itemIDs(of resource: Resource, upstream: Upstream, isOutdated: Bool = false) async throws -> Set<String> {
        var ids: Set<String> = []
        let collection = upstream.origin.url + resource.label
        let items = upstream.origin.url + resource.itemPrefix
        for prefix in items.hasPrefix(collection) ? [collection] : [collection, items] {
            for url in try await cache.urls(prefix: prefix, isPresent: true, isOutdated: isOutdated) {
                guard let request = try? RequestHead(url: url), let entity = active.routes.plan(for: request).entity,
                    entity.resource?.label == resource.label
                else { continue }
                if let id = entity.id { ids.insert(id) }
            }
        }
        return ids
    }

    private func cachedIDs(of resource: Resource, upstream: Upstream) async throws -> Set<String> {
        var ids = try await itemIDs(of: resource, upstream: upstream)
        let collection = upstream.origin.url + resource.label
        for entry in try await cache.entries(ofURL: collection) {
            guard let content = try await reads.lookup.content(of: entry, limit: JSONValue.sizeLimit) else { continue }
            if let value = try? JSONValue.parse(content) { ids.formUnion(resource.ids(in: value) ?? []) }
        }
        return ids
    }
}
