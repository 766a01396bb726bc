// Stores what a pull brought under the items' own URLs: representations and absences that no copy shows yet (docs/outbox.md#listed-items).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// The copies that one pull adds, for the client that it was made for.
struct PulledItems {
    /// The maximum number of items that one pull adds.
    static let limit = 10_000

    let cache: CacheStore
    let active: ActiveConfiguration
    let lookup: EntryLookup
    let now: @Sendable () -> Timestamp
    let scope: PullScope
    let sentAt: Moment
    private(set) var added = 0

    init(
        cache: CacheStore, active: ActiveConfiguration, lookup: EntryLookup, now: @escaping @Sendable () -> Timestamp, scope: PullScope,
        sentAt: Moment
    ) {
        (self.cache, self.active, self.lookup, self.now, self.scope, self.sentAt) = (cache, active, lookup, now, scope, sentAt)
    }

    /// Stores an item that no copy shows; a newer state of it stays. It is fetched anew by the next read that reaches the upstream.
    mutating func add(_ representation: JSONValue, id: String) async throws {
        let body = scope.source.resource.body(of: representation).serialized()
        try await store(status: 200, ["Rockpool-Listed": "1", "Content-Type": "application/json"], body, id: id)
    }

    /// Stores that the upstream has deleted an item.
    mutating func addAbsence(of id: String) async throws {
        let path = scope.source.resource.path(of: id)
        let reply = Reply(
            Problem(.notFound, detail: "\(path) was deleted at its upstream"), Trace(method: "GET", url: path, startedAt: sentAt.at))
        guard case .bytes(let body) = reply.body else { return }
        let type = reply.head.fields[.contentType] ?? "application/problem+json"
        try await store(status: 404, ["Content-Type": type], Array(body.readableBytesView), id: id)
    }

    private var partition: StoragePartition {
        if let principal = scope.principal { return .identity(principal) }
        return scope.source.upstream.identity == .single ? .single : .anonymous
    }

    private mutating func store(status: Int, _ fields: [String: String], _ body: [UInt8], id: String) async throws {
        guard added < Self.limit, body.count <= OwnWriteEffects.representationLimit else { return }
        let request = scope.request(scope.source.resource.path(of: id))
        let plan = active.routes.plan(for: request)
        guard plan.policy == .offlineFirst, plan.store != .never, plan.strategy != .networkOnly else { return }
        let keys = scope.partitions.map { lookup.key(of: request, plan: plan, in: $0) }
        let stored = try await cache.lookup(keys).map(\.response)
        // A copy that was fetched after the pull was sent, or that a later own write has changed, is newer.
        guard !stored.contains(where: { max($0.asked, $0.ownWrite?.at ?? $0.asked) > sentAt.tick }) else { return }
        if stored.contains(where: { ($0.head.status == 200) != (status == 200) }) {
            _ = try await cache.invalidate(urls: [request.url])
        }
        var head = ResponseHead(status: status, fields: [.cacheControl: "no-cache", .date: HTTPDate.format(sentAt.at)])
        for (name, value) in fields { HTTPField.Name(name).map { head.fields[$0] = value } }
        let category = plan.category ?? active.category(named: CacheCategory.important.name) ?? .important
        var response = StoredResponse(head: head, requestTime: sentAt.at, asked: sentAt.tick, responseTime: now(), category: category.name)
        response.isInvalidated = partition == .anonymous
        let key = lookup.key(of: request, plan: plan, in: partition)
        if try await cache.replace(key, by: response, body: ByteBuffer(bytes: body), category: category) { added += 1 }
    }
}
