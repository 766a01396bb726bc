// The sync status of each declared resource: cached, at the upstream, pending, in conflict
// (docs/reference/admin-api.md#sync `/v1/entities`, docs/guide/sync.md, F1).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension OutboxCommands {
    /// Returns the status of every declared resource, in the order of the configuration.
    /// - Throws: the error of a store that cannot be read.
    package func entities() async throws -> [ResourceSyncStatus] {
        let open = Dictionary(grouping: try await data.openOperations()) { operation in
            [operation.upstream, active.routes.plan(for: operation.request).entity?.resource?.label ?? ""]
        }
        var standings: [ResourceSyncStatus] = []
        for upstream in active.configuration.upstreams {
            for resource in upstream.resources {
                var standing = ResourceSyncStatus(upstream: upstream.name, resource: resource.label)
                let operations = open[[upstream.name, resource.label], default: []]
                standing.pending = operations.count { $0.state != .dead }
                standing.conflicts = operations.count { $0.state == .conflicted }
                let pulled = try await data.pulledScopes(prefix: "\(upstream.name)|\(resource.collection)|")
                let latest = pulled.max { ($0.syncedAt ?? .distantPast) < ($1.syncedAt ?? .distantPast) }
                (standing.lastSync, standing.serverCount) = (latest?.syncedAt, latest?.serverCount)
                standing.cached = try await cachedIDs(of: resource, upstream: upstream).count
                standings.append(standing)
            }
        }
        return standings
    }

    private func cachedIDs(of resource: Resource, upstream: Upstream) async throws -> Set<String> {
        var ids: Set<String> = []
        let collection = upstream.origin.url + resource.label
        let items = upstream.origin.url + resource.itemPrefix
        for prefix in items.hasPrefix(collection) ? [collection] : [collection, items] {
            for url in try await cache.urls(prefix: prefix, isPresent: true) {
                guard let request = try? RequestHead(url: url), let entity = active.routes.plan(for: request).entity,
                    entity.resource?.label == resource.label
                else { continue }
                if let id = entity.id { ids.insert(id) }
            }
        }
        for entry in try await cache.entries(ofURL: collection) {
            guard let content = try await reads.lookup.content(of: entry, limit: JSONValue.sizeLimit) else { continue }
            if let value = try? JSONValue.parse(content) { ids.formUnion(resource.ids(in: value) ?? []) }
        }
        return ids
    }
}
