// Applies the changes of one pull to the cache, except for entities with pending writes (docs/outbox.md#delta-pull).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// The application of one pull. Every step may be repeated, because the cursor moves only after all of them.
struct PullApplication {
    struct Applied {
        /// Ids that the upstream reported as present, and as deleted.
        var present: Set<String> = []
        var gone: [String] = []
        /// The times of those deletions that the upstream states.
        var deletedAt: [String: Timestamp] = [:]
        var written = 0
        var removed = 0
        var invalidated = 0
        var withheld: [String: DeltaChange] = [:]
        var conflicts: [ConflictAhead] = []
        var serverCount: Int?
    }

    /// Maximum number of items per run that are fetched for their ETags, and of those compared with the base of a write.
    private static let lookLimit = 50

    let data: DataStore
    let cache: CacheStore
    let active: ActiveConfiguration
    let upstreams: UpstreamClient
    let lookup: EntryLookup
    let now: @Sendable () -> Timestamp
    let respond: @Sendable (Exchange) async -> Reply
    let scope: PullScope
    let sentAt: Moment
    private var resource: Resource { scope.source.resource }
    private var upstream: Upstream { scope.source.upstream }

    /// - Parameters:
    ///   - withheld: changes held back by earlier pulls, by id.
    ///   - known: hashes of the last pull's changes, which the overlap returns again.
    func apply(_ outcome: DeltaOutcome, withheld: [String: DeltaChange], known: Set<Int>) async throws -> Applied {
        var applied = Applied()
        let writes = Dictionary(grouping: try await data.pendingWrites(upstream: upstream.name), by: \.entity)
        var changes = outcome.changes
        if !outcome.isFull {
            changes = changes.filter { !known.contains($0.hashValue) }
            let ids = Set(changes.map(\.id))
            changes = withheld.values.filter { !ids.contains($0.id) }.sorted { $0.id < $1.id } + changes
        }
        for change in changes {
            switch change {
            case .upsert(let id, _, _): applied.present.insert(id)
            case .removal(let id, let at):
                applied.gone.append(id)
                applied.deletedAt[id] = at
            }
        }
        var items: [(url: String, path: String, id: String)] = []
        var lists: [String] = []
        if outcome.isFull || !changes.isEmpty { (items, lists) = try await cached() }
        if outcome.isFull {
            applied.serverCount = applied.present.count
            let missing = Set(items.map(\.id)).subtracting(applied.present).subtracting(applied.gone).sorted()
            changes += missing.map { .removal(id: $0) }
            applied.gone += missing
        }
        let held = changes.filter { writes[resource.entityName(of: $0.id)] != nil }
        applied.withheld = Dictionary(held.map { ($0.id, $0) }) { _, last in last }
        applied.conflicts = try await conflicts(held, writes: writes)
        let byPath = Dictionary(changes.filter { applied.withheld[$0.id] == nil }.map { (resource.path(of: $0.id), $0) }) { _, last in last
        }
        var looks = Self.lookLimit
        for item in items {
            guard let change = byPath[item.path] else { continue }
            try await update(
                item.url, isBare: item.url == upstream.origin.url + item.path, change: change, looks: &looks, applied: &applied)
        }
        var listed: Set<String> = []
        for list in lists { try await merge(list, changes: changes, outcome: outcome, applied: &applied, listed: &listed) }
        // A feed of changes is read to be kept; a list that may not be stored stays so.
        guard !outcome.isNotStored || resource.sync?.pull != nil else { return applied }
        let shown = Set(items.filter { $0.url == upstream.origin.url + $0.path }.map(\.path))
        try await add(changes.filter { byPath[resource.path(of: $0.id)] != nil }, shown: shown, listed: listed)
        return applied
    }

    /// Stores what no copy shows: items that are in no readable list, and absences.
    private func add(_ changes: [DeltaChange], shown: Set<String>, listed: Set<String>) async throws {
        var items = PulledItems(cache: cache, active: active, lookup: lookup, now: now, scope: scope, sentAt: sentAt)
        for change in changes {
            switch change {
            case .upsert(let id, _, let representation) where !listed.contains(id) && !shown.contains(resource.path(of: id)):
                try await items.add(representation, id: id)
            case .upsert: break
            case .removal(let id, _): try await items.addAbsence(of: id)
            }
        }
    }

    /// Returns the cached entries of the resource in this scope's partitions: items with their paths and ids, and URLs of collections.
    private func cached() async throws -> (items: [(url: String, path: String, id: String)], lists: [String]) {
        var urls: Set<String> = []
        for prefix in scope.source.prefixes {
            for partition in scope.partitions {
                urls.formUnion(try await cache.urls(prefix: prefix, in: partition, isPresent: true))
            }
        }
        var items: [(String, String, String)] = []
        var lists: [String] = []
        for url in urls.sorted() {
            guard let request = try? RequestHead(url: url), let entity = active.routes.plan(for: request).entity,
                entity.resource?.collection == resource.collection
            else { continue }
            if !entity.isItem { lists.append(url) } else if let id = entity.id { items.append((url, entity.path, id)) }
        }
        return (items, lists)
    }

    // MARK: cached entries

    private func entries(of url: String) async throws -> [CacheEntry] {
        guard let request = try? RequestHead(url: url) else { return [] }
        let found = try await cache.lookup(scope.partitions.map { CacheKey(request, identity: $0.name) })
        // An entry fetched after the pull was sent is at least as new as the pull's data.
        return found.filter { $0.response.asked <= sentAt.tick }
    }

    /// Updates the entries of one item. An item URL with a query is another view of the entity, so it is fetched again.
    private func update(
        _ url: String, isBare: Bool, change: DeltaChange, looks: inout Int, applied: inout Applied
    ) async throws {
        let entries = try await entries(of: url)
        switch change {
        case .removal:
            try await cache.remove(keys: entries.map(\.key))
            applied.removed += entries.count
        case .upsert(_, _, let representation):
            // What an earlier pull has stored must not hide a copy that the upstream itself gave.
            let listed = entries.filter { $0.response.head.fields.contains(.rockpoolListed) }
            let own = Set(entries.filter { !$0.response.head.fields.contains(.rockpoolListed) }.map(\.key))
            if !own.isEmpty { try await cache.remove(keys: listed.map(\.key).filter { !own.contains($0) }) }
            for entry in entries where listed.count == entries.count || !listed.contains(where: { $0.id == entry.id }) {
                if isBare, entry.response.head.fields.contains(.rockpoolListed) {
                    let new = resource.body(of: representation)
                    if try await json(of: entry) != new { try await write(new, over: entry, applied: &applied) }
                    continue
                }
                guard let body = try await json(of: entry), isBare, let new = resource.item(body, replacedBy: representation) else {
                    if try await fetchAnew(url, entry: entry, looks: &looks) {
                        applied.written += 1
                    } else {
                        try await invalidate(url, applied: &applied)
                    }
                    continue
                }
                if new == body { continue }
                // Only the item's own response carries its ETag, which a later write needs from its base.
                if resource.version == "etag", try await fetchAnew(url, entry: entry, looks: &looks) {
                    applied.written += 1
                } else {
                    try await write(new, over: entry, applied: &applied)
                }
            }
        }
    }

    /// - Parameter listed: receives the ids of the items that are readable from this list.
    private func merge(
        _ url: String, changes: [DeltaChange], outcome: DeltaOutcome, applied: inout Applied, listed: inout Set<String>
    ) async throws {
        let isWhole = url == upstream.origin.url + resource.collection
        for entry in try await entries(of: url) {
            guard let body = try await json(of: entry), isWhole,
                let new = resource.collection(
                    body, fields: entry.response.head.fields, applying: changes, isFull: outcome.isFull, keeping: Set(applied.withheld.keys)
                )
            else {
                try await invalidate(url, applied: &applied)
                continue
            }
            let ids = resource.ids(in: new) ?? []
            if !outcome.isFull { applied.serverCount = ids.count }
            if new.serialized().count <= OwnWriteEffects.representationLimit { listed.formUnion(ids) }
            if new != body { try await write(new, over: entry, applied: &applied) }
        }
    }

    /// Returns the body as JSON; nil when it is not JSON, partial or in a coding that cannot be decoded.
    private func json(of entry: CacheEntry) async throws -> JSONValue? {
        guard entry.response.head.status == 200, let content = try await lookup.content(of: entry, limit: JSONValue.sizeLimit) else {
            return nil
        }
        return try? JSONValue.parse(content)
    }

    private func write(_ body: JSONValue, over entry: CacheEntry, applied: inout Applied) async throws {
        let bytes = body.serialized()
        guard let category = active.category(named: entry.response.category),
            let writer = await cache.beginWrite(expectedLength: Int64(bytes.count), category: category, for: entry.key),
            try await writer.append(ByteBuffer(bytes: bytes))
        else { return try await invalidate(entry.key.url, applied: &applied) }
        var response = StoredResponse(
            head: entry.response.head.revised, requestFields: entry.response.requestFields, requestTime: sentAt.at,
            asked: sentAt.tick, responseTime: now(), category: category.name, assignedTTL: entry.response.assignedTTL)
        response.isInvalidated = entry.key.partition == .anonymous
        _ = try await cache.commit(writer, key: entry.key, response: response, groups: CacheGroups.all(in: response.head.fields))
        applied.written += 1
    }

    private func invalidate(_ url: String, applied: inout Applied) async throws {
        applied.invalidated += try await cache.invalidate(urls: [url])
    }

    /// Fetches the entry again, as an ordinary read. Returns true if a new entry was stored.
    private func fetchAnew(_ url: String, entry: CacheEntry, looks: inout Int) async throws -> Bool {
        guard looks > 0, var request = try? RequestHead(url: url) else { return false }
        looks -= 1
        request.fields = scope.fields
        for field in SecretFields.removed(from: entry.response.requestFields) where !request.fields.contains(field.name) {
            request.fields.append(field)
        }
        request.fields[.cacheControl] = "no-cache"
        let reply = await respond(Exchange(request: request))
        let bytes = (try? await reply.body.drained()) ?? 0
        reply.ended(ReplyEnd(bytes: bytes))
        return try await cache.lookup(entry.key).contains { $0.id != entry.id && $0.response.head.status == 200 }
    }

    // MARK: conflicts ahead of pending writes

    private func conflicts(_ held: [DeltaChange], writes: [String: [PendingWrite]]) async throws -> [ConflictAhead] {
        var found: [ConflictAhead] = []
        for change in held.prefix(Self.lookLimit) {
            let path = resource.path(of: change.id)
            // Later writes of the entity build on the result of the first.
            let entity = resource.entityName(of: change.id)
            guard let write = writes[entity]?.first else { continue }
            let (theirs, etag) = try await look(at: change, path: path)
            if let etag, etag == (try await data.ownETag(upstream: upstream.name, entity: entity)) { continue }
            if let conflict = write.conflict(with: theirs, etag: etag, base: try await base(of: path)) { found.append(conflict) }
        }
        return found
    }

    /// Returns the entity's current representation with its ETag, read from the upstream where versions are ETags: a list element has none.
    private func look(at change: DeltaChange, path: String) async throws -> (DeltaChange, etag: String?) {
        guard resource.version == "etag", case .upsert(let id, let version, _) = change,
            let answer = try? await upstreams.send(scope.request(path), body: .none, upstream: upstream, forClient: false)
        else { return (change, nil) }
        let body = try await answer.body.collect(upTo: JSONValue.sizeLimit)
        guard answer.head.status == 200, body.isWhole, let value = try? JSONValue.parse(Array(body.bytes.readableBytesView)),
            let theirs = resource.object(in: value)
        else { return (change, nil) }
        return (.upsert(id: id, version: version, representation: theirs), answer.head.fields[.eTag])
    }

    /// Returns the cached representation, which a client could have seen.
    private func base(of path: String) async throws -> JSONValue? {
        for entry in try await entries(of: upstream.origin.url + path) {
            if let body = try await json(of: entry) { return resource.object(in: body) }
        }
        return nil
    }
}

// MARK: - Items that no copy shows yet

/// The copies that one pull adds, for the client that it was made for (docs/outbox.md#listed-items).
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
