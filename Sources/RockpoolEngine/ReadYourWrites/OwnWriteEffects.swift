// Keeps cached copies in agreement with the writes that pass: the item, and the lists that contain it (docs/outbox.md#effects).
import HTTPTypes
import Logging
import NIOCore
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
    private let reads: ReadPipeline
    private let active: ActiveConfiguration
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    /// One write at a time works on the copies of a collection.
    private let turns = KeyTurns()

    init(
        cache: CacheStore, reads: ReadPipeline, active: ActiveConfiguration, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.cache = cache
        self.reads = reads
        self.active = active
        self.logger = logger
        self.now = now
    }

    /// Works an answered write into the copies of its writer. Failures are logged: then the copies count as older than the write.
    /// - Parameters:
    ///   - partition: the writer's, as `Identity.partition`.
    ///   - sentAt: the time the write was sent.
    func note(_ write: AnsweredWrite, partition: String?, sentAt: Timestamp) async {
        var write = write
        let plan = active.routes.plan(for: write.request)
        write.entity = plan.entity
        write.success = plan.success
        guard plan.upstream != nil, write.outcome != .none, plan.strategy != .networkOnly else { return }
        let turn = CacheKey(write.request.at(write.entity?.collection ?? write.request.path), identity: "")
        await turns.enter(key: turn)
        defer { turns.leave(key: turn) }
        do {
            try await work(write, plan, partition: partition, sentAt: sentAt)
        } catch { logger.failed("an own write is not worked into the cache", error: error) }
    }

    /// True if no copy of the item that a write changed is newer than its answer: then the lists may lack its effect, too.
    /// - Parameter answeredAt: the time of the answer.
    func lacks(_ write: AnsweredWrite, partition: String?, answeredAt: Timestamp) async -> Bool {
        var write = write
        write.entity = active.routes.plan(for: write.request).entity
        let readable = StoragePartition.readable(by: partition)
        for url in OwnWritePlaces(write).items {
            let copies = (try? await cache.copies(ofPath: url, in: readable, limit: Self.listLimit)) ?? []
            let newest = copies.map { max($0.response.requestTime, $0.response.ownWrite?.at ?? .distantPast) }.max()
            if let newest, newest >= answeredAt { return false }
        }
        return true
    }

    private func work(_ write: AnsweredWrite, _ plan: RoutePlan, partition: String?, sentAt: Timestamp) async throws {
        let readable = StoragePartition.readable(by: partition)
        let places = OwnWritePlaces(write)
        var items: [String: [CacheEntry]] = [:]
        for url in places.items { items[url] = try await cache.copies(ofPath: url, in: readable, limit: Self.listLimit) }
        var lists: [CacheEntry] = []
        for url in places.lists { lists += try await cache.copies(ofPath: url, in: readable, limit: Self.listLimit) }
        var members: [String] = []
        for list in places.lists where places.isCollectionWide && !list.hasSuffix("/") {
            members = try await cache.urls(prefix: list + "/", in: .own(partition)) + cache.urls(prefix: list + "/", in: .shared)
        }
        try await cache.markOwnWrite(
            urls: places.items + places.lists + places.others + members, partitions: readable, at: now())
        guard write.outcome != .partial, plan.policy == .offlineFirst, plan.store != .never else { return }
        let writer = Writer(partition: .own(partition), sentAt: sentAt)
        if let resource = write.entity?.resource {
            if places.isCollectionWide, write.request.method == .delete {
                for url in Set(members).sorted().prefix(Self.memberLimit) { try await storeAbsence(of: url, by: writer) }
            }
            try await workIn(write, resource: resource, places: places, items: items, lists: lists, by: writer)
        } else {
            try await replaceUndeclared(write, copies: items[write.request.url] ?? [], by: writer)
        }
    }

    private struct Writer {
        var partition: StoragePartition
        var sentAt: Timestamp
    }

    // MARK: a declared resource

    private func workIn(
        _ write: AnsweredWrite, resource: Resource, places: OwnWritePlaces, items: [String: [CacheEntry]], lists: [CacheEntry],
        by writer: Writer
    ) async throws {
        guard write.addressesEntity || write.answerValue != nil, let folded = FoldedWrite(write, places.created) else { return }
        if let url = places.item {
            let copies = items[url] ?? []
            let copy = copies.first { $0.key.url == url && $0.response.head.status == 200 && !$0.response.isDirty }
            var base: JSONValue?
            if let copy { base = try await json(of: copy) } else { base = try await element(of: folded.id, in: lists, resource: resource) }
            let isListed = copy == nil && base != nil && write.request.method == .patch
            switch ItemFold.fold(base, with: [folded], resource: resource) {
            case .present(let value, _, _):
                let isAnswer = write.answerValue == value && !write.answer.isNotStored
                guard copy != nil || !write.answer.isNotStored else { break }
                let bytes = isAnswer ? write.answerBody ?? [] : value.serialized()
                try await store(bytes, at: url, after: write, over: copy, isAnswer: isAnswer, isListed: isListed, by: writer)
            case .deleted: try await storeAbsence(of: url, by: writer)
            case .unchanged, .dirty: break
            }
        }
        for list in lists { try await fold(folded, into: list, resource: resource, by: writer) }
    }

    /// Returns the item as the first list shows it that contains it; nil if none does.
    private func element(of id: String?, in lists: [CacheEntry], resource: Resource) async throws -> JSONValue? {
        for list in lists where list.response.isKnownState {
            if let id, let body = try await json(of: list), let element = resource.element(id, in: body) {
                return resource.body(of: element)
            }
        }
        return nil
    }

    private func fold(_ write: FoldedWrite, into list: CacheEntry, resource: Resource, by writer: Writer) async throws {
        guard list.response.head.status == 200, !list.response.isDirty, let body = try await json(of: list) else { return }
        let query = list.key.url.split(separator: "?", maxSplits: 1).dropFirst().first.map { String($0) }
        let folded = CollectionFold.fold(body, query: query, with: [write], resource: resource)
        guard !folded.isDirty else { return }
        var response = list.response
        response.head.fields = response.head.fields.ofComputedBody
        response.ownWrite = OwnWriteMark(at: now(), isIncluded: true)
        response.isInvalidated = true
        try await put(folded.value.serialized(), key: CacheKey(list.key, in: writer.partition), response: response)
    }

    // MARK: any other path

    /// A PUT's own URL has the written representation now; a DELETE's has none (RFC 9110 §9.3.4, §9.3.5).
    private func replaceUndeclared(_ write: AnsweredWrite, copies: [CacheEntry], by writer: Writer) async throws {
        let url = write.request.url
        let copy = copies.first { $0.key.url == url && $0.response.head.status == 200 }
        switch (write.outcome, write.request.method) {
        case (.applied, .put):
            guard copy != nil || !write.answer.isNotStored else { return }
            if write.answersWithTarget, let body = write.answerBody, !write.answer.isNotStored {
                try await store(body, at: url, after: write, over: copy, isAnswer: true, by: writer)
            } else if let body = write.body, !write.request.fields.contains(.contentRange) {
                try await store(body, at: url, after: write, over: copy, isAnswer: false, by: writer)
            }
        case (.applied, .delete), (.absent, _): try await storeAbsence(of: url, by: writer)
        default: return
        }
    }

    // MARK: storing

    /// - Parameter isListed: true if the body comes from a list, which may lack members.
    private func store(
        _ bytes: [UInt8], at url: String, after write: AnsweredWrite, over copy: CacheEntry?, isAnswer: Bool, isListed: Bool = false,
        by writer: Writer
    ) async throws {
        guard let request = try? RequestHead(url: url) else { return }
        var fields = (copy?.response.head.fields ?? [:]).ofComputedBody
        if isAnswer {
            fields[.contentType] = write.answer.fields[.contentType]
            fields[.contentLanguage] = write.answer.fields[.contentLanguage]
        } else if isListed {
            fields[.contentType] = "application/json"
            fields[.rockpoolListed] = "1"
        } else if copy == nil || write.request.method == .put {
            fields[.contentType] = write.request.fields[.contentType] ?? fields[.contentType]
        }
        // A new version is named by the answer to the write (RFC 9110 §9.3.4); its fields may describe another body.
        fields[.eTag] = write.answer.fields[.eTag]
        fields[.lastModified] = write.answer.fields[.lastModified]
        fields[.date] = HTTPDate.format(now())
        var response = StoredResponse(
            head: ResponseHead(status: 200, fields: fields), requestFields: copy?.response.requestFields ?? [:],
            requestTime: writer.sentAt, responseTime: now(), category: category(of: copy, write.request),
            assignedTTL: copy?.response.assignedTTL)
        response.ownWrite = OwnWriteMark(at: now(), isIncluded: true)
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
            head: ResponseHead(status: 404, fields: fields), requestTime: writer.sentAt, responseTime: now(),
            category: category(of: nil, request))
        response.ownWrite = OwnWriteMark(at: now(), isIncluded: true)
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
