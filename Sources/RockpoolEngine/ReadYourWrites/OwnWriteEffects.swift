// Keeps cached copies in agreement with the writes that pass: the item, and the lists that contain it (docs/outbox.md#effects).
import HTTPTypes
import Logging
import NIOCore
import OrderedCollections
import RockpoolCore
import RockpoolStore

/// Works the effect of each answered write into the copies that its writer reads, so that what was saved online is read offline.
final class OwnWriteEffects: Sendable {
    /// The maximum size in bytes of a representation that is stored in the place of the upstream's.
    static let representationLimit = Int.mib(4)
    /// The maximum number of lists of one collection into which a write is worked; the others count as older than the write.
    private static let listLimit = 24
    /// The maximum number of members that are remembered as absent after their collection was deleted; the others count as dirty.
    private static let memberLimit = 1_000

    private let cache: CacheStore
    private let sight: ClientSight
    private let reads: ReadPipeline
    private let active: ActiveConfiguration
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    /// The writes of a collection that wait while its copies are worked on are worked in together: a list is then parsed and stored once for
    /// all of them, not once for each.
    private let turns = GatheredTurns<Effect>()

    init(
        cache: CacheStore, sight: ClientSight, reads: ReadPipeline, active: ActiveConfiguration, logger: Logger,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.sight = sight
        self.reads = reads
        self.active = active
        self.logger = logger
        self.now = now
    }

    /// Works an answered write into the copies of its writer. Failures are logged: then the copies count as older than the write.
    /// - Parameters:
    ///   - viewer: the writer.
    ///   - sentAt: when the write was sent.
    func note(_ write: AnsweredWrite, by viewer: Viewer, sentAt: Moment) async {
        var write = write
        let partition = viewer.partition.isEmpty ? nil : viewer.partition
        let plan = active.routes.plan(for: write.request)
        write.entity = plan.entity
        write.success = plan.success
        guard plan.upstream != nil, !plan.isTelemetry, write.outcome != .none else { return }
        sight.note(write.answer, to: write.request, by: viewer)
        guard plan.strategy != .networkOnly else { return }
        if write.created != nil {
            let created = await reads.lookup.created(
                by: write.answer, json: write.answerJSON, to: write.request, resource: write.entity?.resource, partition: partition)
            write.idsAreNumbers = created?.id.isNumber == true
        }
        let turn = CacheKey(write.request.at(write.entity?.collection ?? write.request.path), identity: "")
        let effect = Effect(write: write, plan: plan, places: OwnWritePlaces(write), partition: partition, sentAt: sentAt)
        guard let group = await turns.enter(effect, key: turn) else { return }
        defer { turns.leave(group, key: turn) }
        var rest = group.jobs[...]
        while let first = rest.first {
            var items: Set<String> = []
            let run = rest.prefix { effect in
                guard effect.mayJoin(first), items.isDisjoint(with: effect.places.items) else { return false }
                items.formUnion(effect.places.items)
                return true
            }
            let together = run.isEmpty ? rest.prefix(1) : run
            rest = rest.dropFirst(together.count)
            do {
                try await work(Array(together))
            } catch { logger.failed("an own write is not worked into the cache", error: error) }
        }
    }

    /// True if no copy of the item that a write changed is newer than its answer: then the lists may lack its effect, too.
    /// - Parameter endedAt: the end of the write.
    func lacks(_ write: AnsweredWrite, partition: String?, endedAt: Tick) async -> Bool {
        var write = write
        write.entity = active.routes.plan(for: write.request).entity
        let readable = StoragePartition.readable(by: partition)
        for url in OwnWritePlaces(write).items {
            let copies = (try? await cache.copies(ofPath: url, in: readable, limit: Self.listLimit)) ?? []
            let newest = copies.map { max($0.response.asked, $0.response.ownWrite?.at ?? .first) }.max()
            if let newest, newest >= endedAt { return false }
        }
        return true
    }

    /// Marks the lists that were asked for before a write ended, whose item was read again since.
    func markLists(of write: AnsweredWrite, partition: String?, olderThan endedAt: Tick) async {
        var write = write
        write.entity = active.routes.plan(for: write.request).entity
        let readable = StoragePartition.readable(by: partition)
        do {
            var old: [String] = []
            for url in OwnWritePlaces(write).shown(in: active.routes) {
                let copies = try await cache.copies(ofPath: url, in: readable, limit: Self.listLimit)
                if copies.contains(where: { $0.response.asked < endedAt && $0.response.ownWrite?.isIncluded != true }) { old.append(url) }
            }
            try await cache.markNearOwnWrite(urls: old, partitions: readable, at: endedAt)
        } catch { logger.failed("the lists near a write are not marked", error: error) }
    }

    /// Works writes of one client into its copies: several to different items of a collection, or a single one of any kind.
    private func work(_ effects: [Effect]) async throws {
        guard let first = effects.first else { return }
        let readable = StoragePartition.readable(by: first.partition)
        reads.responses.learning.noteWrites(at: effects.flatMap(\.places.items))
        var (items, lists): ([String: [CacheEntry]], [String: [CacheEntry]]) = ([:], [:])
        func copies(of url: String) async throws -> [CacheEntry] {
            try await cache.copies(ofPath: url, in: readable, limit: Self.listLimit)
                .filter { Vary.isOfSender($0.response, of: first.write.request) }
        }
        for url in effects.flatMap(\.places.items) { items[url] = try await copies(of: url) }
        let listURLs = OrderedSet(effects.flatMap(\.places.lists))
        for url in listURLs { lists[url] = try await copies(of: url) }
        var members: [String] = []
        let trees =
            listURLs.filter { first.places.isCollectionWide && !$0.hasSuffix("/") }.map { $0 + "/" } + effects.flatMap(\.places.trees)
        for tree in trees {
            members += try await cache.urls(prefix: tree, in: .own(first.partition)) + cache.urls(prefix: tree, in: .shared)
        }
        let places = effects.flatMap { $0.places.items + $0.places.lists + $0.places.others }
        try await cache.markOwnWrite(urls: Array(OrderedSet(places + members)), partitions: readable, at: cache.ticks.next())
        try await cache.markNearOwnWrite(urls: first.places.near(in: active.routes), partitions: readable, at: cache.ticks.next())
        guard first.write.outcome != .partial, first.plan.policy == .offlineFirst, first.plan.store != .never else { return }
        guard let resource = first.write.entity?.resource else {
            return try await replaceUndeclared(first.write, copies: items[first.write.request.url] ?? [], by: first.writer)
        }
        if first.places.isCollectionWide && first.write.request.method == .delete || effects.contains(where: { $0.places.deleted != nil }) {
            for url in Set(members).sorted().prefix(Self.memberLimit) { try await storeAbsence(of: url, by: first.writer) }
        }
        try await workIn(effects, resource: resource, items: items, lists: listURLs.flatMap { lists[$0] ?? [] }, writer: first.writer)
    }

    /// A write whose effect waits to be worked in.
    private struct Effect: Sendable {
        let write: AnsweredWrite
        let plan: RoutePlan
        let places: OwnWritePlaces
        let partition: String?
        let sentAt: Moment

        var writer: Writer { Writer(partition: .own(partition), sentAt: sentAt, selecting: selecting) }

        /// The fields by which the writer's copies are selected, whatever their `Vary`.
        var selecting: HTTPFields { Vary.selectingFields(write.request.fields.selectingNames, of: write.request) }

        /// True if it may be worked in together with `other`: both change items of a declared resource, as the same client.
        func mayJoin(_ other: Effect) -> Bool {
            [self, other].allSatisfy {
                $0.write.entity?.resource != nil && !$0.places.isCollectionWide && $0.write.outcome != .partial
                    && $0.plan.policy == .offlineFirst && $0.plan.store != .never
            } && partition == other.partition && selecting == other.selecting
        }
    }

    private struct Writer {
        var partition: StoragePartition
        var sentAt: Moment
        let selecting: HTTPFields
    }

    // MARK: - A declared resource

    private func workIn(
        _ effects: [Effect], resource: Resource, items: [String: [CacheEntry]], lists: [CacheEntry], writer: Writer
    ) async throws {
        let changes = effects.compactMap { effect -> Change? in
            guard effect.write.addressesEntity || effect.write.answerValue != nil,
                let folded = FoldedWrite(effect.write, effect.places.created)
            else { return nil }
            let copies = effect.places.item.flatMap { items[$0] } ?? []
            let copy = copies.first {
                $0.key.url == effect.places.item && $0.response.head.status == 200 && !$0.response.isDirty
            }
            return Change(effect: effect, folded: folded, copy: copy)
        }
        guard !changes.isEmpty else { return }
        var bases: [String: JSONValue] = [:]
        for list in lists {
            guard list.response.isKnownState || list.response.head.status == 200, let body = try await json(of: list) else { continue }
            let shown = Set(list.response.isKnownState ? resource.ids(in: body) ?? [] : [])
            for change in changes where change.copy == nil {
                guard let id = change.folded.id, shown.contains(id), bases[id] == nil, let element = resource.element(id, in: body) else {
                    continue
                }
                bases[id] = resource.body(of: element)
            }
            try await fold(changes.map(\.folded), into: list, body: body, resource: resource, by: writer)
        }
        // A list has the type of its items.
        let type = lists.lazy.compactMap { $0.response.head.fields[.contentType] }.first { MediaType.isJSON([.contentType: $0]) }
        try await withThrowingTaskGroup { [bases] group in
            for change in changes {
                group.addTask {
                    try await self.workIn(change, base: change.folded.id.flatMap { bases[$0] }, type: type, resource: resource)
                }
            }
            try await group.waitForAll()
        }
    }

    /// A write to an item, as it is folded.
    private struct Change: Sendable {
        let effect: Effect
        let folded: FoldedWrite
        /// The copy of the item; nil if none can be folded into.
        let copy: CacheEntry?
    }

    /// - Parameters:
    ///   - listed: the item as a list shows it; nil if none does.
    ///   - type: the media type of lists; nil without one.
    private func workIn(_ change: Change, base listed: JSONValue?, type: String?, resource: Resource) async throws {
        guard let url = change.effect.places.item else { return }
        let (write, writer, copy) = (change.effect.write, change.effect.writer, change.copy)
        let base: JSONValue?
        if let copy { base = try await json(of: copy) } else { base = listed }
        if let put = PartialPut(write, before: base), let upstream = change.effect.plan.upstream?.name {
            reads.responses.learning.note(
                put, answer: write.answersWithEntity ? write.answerValue : nil, at: url, of: upstream, partition: writer.partition,
                tick: cache.ticks.next())
        }
        let isListed = copy == nil && base != nil && write.request.method == .patch
        switch ItemFold.fold(base, with: [change.folded], resource: resource) {
        case .present(let value, _, _):
            guard copy != nil || !write.answer.isNotStored else { break }
            if write.answerValue == value, !write.answer.isNotStored, let body = write.answerBody {
                try await store(body, from: .answer, at: url, after: write, over: copy, by: writer)
            } else {
                try await store(
                    value.serialized(), from: isListed ? .list(type) : .fold(type), at: url, after: write, over: copy, by: writer)
            }
        case .deleted: try await storeAbsence(of: url, by: writer)
        case .unchanged, .dirty: break
        }
    }

    private func fold(
        _ writes: [FoldedWrite], into list: CacheEntry, body: JSONValue, resource: Resource, by writer: Writer
    ) async throws {
        guard list.response.head.status == 200, !list.response.isDirty else { return }
        let query = list.key.url.split(separator: "?", maxSplits: 1).dropFirst().first.map { String($0) }
        var value = CollectionFold.fold(body, query: query, with: writes, resource: resource)
        var (isIncluded, growth) = (true, value.growth)
        if value.isDirty {
            // Those that can be folded in are: the list counts as older than the write only if the last one cannot.
            value.value = body
            growth = 0
            var hasChanged = false
            for write in writes {
                let next = CollectionFold.fold(value.value, query: query, with: [write], resource: resource)
                isIncluded = !next.isDirty
                if isIncluded { (value.value, hasChanged, growth) = (next.value, true, growth + next.growth) }
            }
            guard hasChanged else { return }
        }
        var response = list.response
        response.head.fields = response.head.fields.ofComputedCopy
        response.head.fields.countItems(growth)
        response.ownWrite = OwnWriteMark(at: cache.ticks.next(), isIncluded: isIncluded)
        response.isInvalidated = true
        try await put(value.value.serialized(), key: CacheKey(list.key, in: writer.partition), response: response)
    }

    // MARK: - Any other path

    /// A PUT's own URL has the written representation now; a DELETE's has none (RFC 9110 §9.3.4, §9.3.5).
    private func replaceUndeclared(_ write: AnsweredWrite, copies: [CacheEntry], by writer: Writer) async throws {
        let url = write.request.url
        let copy = copies.first { $0.key.url == url && $0.response.head.status == 200 }
        switch (write.outcome, write.request.method) {
        case (.applied, .put):
            guard copy != nil || !write.answer.isNotStored else { return }
            if write.answersWithTarget, let body = write.answerBody, !write.answer.isNotStored {
                try await store(body, from: .answer, at: url, after: write, over: copy, by: writer)
            } else if let body = write.body, write.setsItsBody {
                let content = ChunkedUpload.content(of: body, write.request.fields)
                let isJSON = copy.map { MediaType.isJSON($0.response.head.fields) } ?? false
                let known: [UInt8]? = if isJSON, let copy { try await json(of: copy)?.serialized() } else { nil }
                guard WrittenContent(write.request.fields, body: content).mayRepresent(copy?.response.head, content: known) else { return }
                try await store(content, from: .upload, at: url, after: write, over: copy, by: writer)
            }
        case (.applied, .delete), (.absent, _): try await storeAbsence(of: url, by: writer)
        default: return
        }
    }

    // MARK: - Storing

    /// What the representation of a write was made from.
    private enum Source {
        case answer
        /// The element of a list, which may lack members; with the list's media type.
        case list(String?)
        /// The stored representation, or the write's own; with the media type of lists.
        case fold(String?)
        /// The content of a PUT as it was sent.
        case upload
    }

    private func store(
        _ bytes: [UInt8], from source: Source, at url: String, after write: AnsweredWrite, over copy: CacheEntry?, by writer: Writer
    ) async throws {
        guard let request = try? RequestHead(url: url) else { return }
        var fields = (copy?.response.head.fields ?? [:]).ofComputedCopy
        switch source {
        case .answer:
            fields[.contentType] = write.answer.fields[.contentType]
            fields[.contentLanguage] = write.answer.fields[.contentLanguage]
        case .list(let type):
            fields[.contentType] = type ?? "application/json"
            fields[.rockpoolListed] = "1"
        case .fold(let type) where copy == nil || write.request.method == .put:
            let (sent, known) = (write.request.fields[.contentType], fields[.contentType] ?? type)
            // The API's own JSON type stands for that of a request.
            let isKnown = known.map { MediaType.isJSON([.contentType: $0]) } == true && MediaType.isJSON(write.request.fields)
            fields[.contentType] = isKnown ? known : sent ?? known
        case .fold: break
        case .upload: fields.describe(write.request.fields.ofWrittenContent)
        }
        // A new version is named by the answer to the write (RFC 9110 §9.3.4); its fields may describe another body.
        fields[.eTag] = write.answer.fields[.eTag]
        fields[.lastModified] = write.answer.fields[.lastModified]
        var response = StoredResponse(
            head: ImpliedVary.varying(ResponseHead(status: 200, fields: fields), by: writer.selecting.map(\.name)),
            requestFields: copy?.response.requestFields ?? writer.selecting,
            requestTime: writer.sentAt.at, asked: writer.sentAt.tick, responseTime: now(), category: category(of: copy, write.request),
            assignedTTL: copy?.response.assignedTTL)
        response.ownWrite = OwnWriteMark(at: cache.ticks.next(), isIncluded: true)
        response.isInvalidated = true
        let key = copy.map { CacheKey($0.key, in: writer.partition) }
        try await put(
            bytes, key: key ?? reads.lookup.key(of: request, plan: active.routes.plan(for: request), in: writer.partition),
            response: response)
    }

    /// Remembers that the upstream has nothing under this URL.
    private func storeAbsence(of url: String, by writer: Writer) async throws {
        guard let request = try? RequestHead(url: url) else { return }
        let problem = Problem(.notFound, detail: "\(request.path) was deleted through this proxy")
        let reply = Reply(problem, Trace(method: "GET", url: url, startedAt: now()))
        guard case .bytes(let body) = reply.body else { return }
        var fields: HTTPFields = [.contentType: reply.head.fields[.contentType] ?? "application/json"]
        fields[.date] = HTTPDate.format(now())
        var response = StoredResponse(
            head: ImpliedVary.varying(ResponseHead(status: 404, fields: fields), by: writer.selecting.map(\.name)),
            requestFields: writer.selecting, requestTime: writer.sentAt.at, asked: writer.sentAt.tick, responseTime: now(),
            category: category(of: nil, request))
        response.ownWrite = OwnWriteMark(at: cache.ticks.next(), isIncluded: true)
        response.isInvalidated = true
        try await put(
            Array(body.readableBytesView), key: reads.lookup.key(of: request, plan: active.routes.plan(for: request), in: writer.partition),
            response: response)
    }

    private func category(of copy: CacheEntry?, _ request: RequestHead) -> String {
        copy?.response.category ?? active.routes.plan(for: request).category?.name ?? CacheCategory.important.name
    }

    private func put(_ bytes: [UInt8], key: CacheKey, response: StoredResponse) async throws {
        guard bytes.count <= Self.representationLimit else { return }
        let category = active.category(named: response.category) ?? .important
        _ = try await cache.replace(key, by: response, body: ByteBuffer(bytes: bytes), category: category)
    }

    /// Returns the copy's body as JSON, decoded where it is encoded; nil if it is not JSON, partial or too large.
    private func json(of entry: CacheEntry) async throws -> JSONValue? {
        guard let bytes = try await reads.lookup.content(of: entry, limit: Self.representationLimit) else { return nil }
        return try? JSONValue.parse(bytes)
    }
}

extension FoldedWrite {
    /// The answered write as folding uses it; nil where its effect on the representation is unknown.
    fileprivate init?(_ write: AnsweredWrite, _ created: ServerMapping?) {
        let isGone = write.outcome == .absent
        let id = created?.id.text ?? write.entity?.names { _, _ in nil }.id
        let isWide = write.entity?.isItem == false && created == nil && write.request.method == .delete
        guard write.entity?.isItem == true || created != nil || isWide else { return nil }
        self.init(
            sequence: 1, method: isGone ? .delete : write.request.method, isItem: created == nil, id: id,
            idIsNumber: created?.id.isNumber ?? false, contentType: write.request.fields[.contentType], body: write.body ?? [],
            action: isGone ? nil : write.entity?.action, answer: isGone ? nil : write.answerValue, isDelivered: true)
        isCollectionWide = isWide
    }
}
