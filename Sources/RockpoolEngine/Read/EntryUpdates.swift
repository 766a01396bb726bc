// Changes stored entries without a new body: after a 304 or a response to HEAD (RFC 9111 §4.3.4, §4.3.5), and after a write (§4.4).
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolStore

/// Updates and invalidates stored entries.
struct EntryUpdates: Sendable {
    let cache: CacheStore
    let lookup: EntryLookup
    /// The configuration in force.
    let active: ActiveConfiguration
    /// Tells the other nodes of a fleet.
    let news: StaleNews
    let logger: Logger
    let now: @Sendable () -> Timestamp

    // MARK: 304

    /// Returns the copy selected by a 304, with its head updated (§4.3.4); nil if the 304 matches no stored entry.
    func freshened(
        by notModified: ResponseHead, sentAt: Moment, for context: RequestContext, forwarding: Forwarding
    ) async -> ValidatedCopy? {
        guard let copy = validated(by: notModified, sentAt: sentAt, for: context, forwarding: forwarding) else { return nil }
        if copy.isForOthers { await replace(with: copy.entry, for: context) }
        return copy
    }

    /// The same without the disk, whose row follows later: callable on an event loop. Nil also if that is not possible.
    func freshenedInMemory(
        by notModified: ResponseHead, sentAt: Moment, for context: RequestContext, forwarding: Forwarding
    ) -> ValidatedCopy? {
        guard let copy = validated(by: notModified, sentAt: sentAt, for: context, forwarding: forwarding), case let entry = copy.entry,
            entry.id == forwarding.entry?.id, copy.isForOthers, mayUpdate(entry, for: context),
            Revalidation.mayStay(entry.response, in: entry.key.partition, rule: context.plan.store),
            cache.freshenInMemory(entry, as: kept(entry), groups: CacheGroups.all(in: entry.response.head.fields))
        else { return nil }
        return copy
    }

    /// The copy selected by a 304, as its client gets it.
    private func validated(
        by notModified: ResponseHead, sentAt: Moment, for context: RequestContext, forwarding: Forwarding
    ) -> ValidatedCopy? {
        let responses = forwarding.found.map(\.response)
        guard let asked = forwarding.selected,
            let selected = Revalidation.selected(among: responses, asked: asked, notModified: notModified)
        else { return nil }
        var entry = forwarding.found[selected]
        let isSelected = Vary.matches(stored: entry.response, request: lookup.selecting(for: context.request, among: responses))
        // The 304 may be the first that varies by a secret, which is stored by its name only.
        entry.response = Revalidation.freshened(
            entry.response, by: notModified, request: context.request, veiling: lookup.veiled, sent: sentAt, responseTime: now())
        entry.response.adopt(context.plan.route?.ttl)
        return ValidatedCopy(
            entry: entry, isForOthers: isSelected, forRequester: HTTPFields(notModified.fields.filter { $0.name == .setCookie }))
    }

    /// A response as it is kept: that of nobody in particular is validated for each.
    private func kept(_ entry: CacheEntry) -> StoredResponse {
        var response = entry.response
        response.isInvalidated = entry.key.partition == .anonymous
        return response
    }

    /// Updates the head of a stored part after a 304 for the tag of its representation.
    func freshen(_ part: CacheEntry, by notModified: ResponseHead, for context: RequestContext, forwarding: Forwarding) async {
        guard let index = forwarding.found.firstIndex(where: { $0.id == part.id }) else { return }
        var validating = forwarding
        validating.selected = index
        _ = await freshened(by: notModified, sentAt: cache.moment(), for: context, forwarding: validating)
    }

    /// Stores the entry's new head. If the new head forbids storing the entry in its partition, the entry is invalidated instead.
    private func replace(with entry: CacheEntry, for context: RequestContext) async {
        let partition = entry.key.partition
        do {
            guard mayUpdate(entry, for: context) else { return }
            if Revalidation.mayStay(entry.response, in: partition, rule: context.plan.store) {
                try await cache.freshen(entry, as: kept(entry), groups: CacheGroups.all(in: entry.response.head.fields))
            } else {
                _ = try await cache.invalidate(urls: [entry.key.url])
            }
        } catch { logger.failed("cache freshen failed", error: error) }
    }

    /// True if a response to this request may change the entry, which has its new directives: the response to a request with credentials
    /// changes a shared entry only if it is itself shareable (§3.5).
    private func mayUpdate(_ entry: CacheEntry, for context: RequestContext) -> Bool {
        let hasCredentials = context.identity.partition != nil || context.request.fields.contains(.authorization)
        return entry.key.partition != .shared || !hasCredentials || Storability.isShareable(entry.response.directives)
    }

    // MARK: HEAD

    /// Updates or invalidates the stored GET response after a response to HEAD (§4.3.5).
    func apply(head reply: OriginReply, sentAt: Moment, for context: RequestContext, forwarding: Forwarding) async {
        let request = lookup.selecting(for: context.request, among: forwarding.found.map(\.response))
        let entry = forwarding.entry ?? forwarding.found.first { Vary.matches(stored: $0.response, request: request) }
        guard let entry, !entry.response.isHeadOnly else { return }
        do {
            let outcome = Revalidation.head(
                entry.response, by: reply.head, length: reply.length, sent: sentAt, responseTime: now())
            switch outcome {
            case .freshened(let response):
                var entry = entry
                entry.response = response
                await replace(with: entry, for: context)
            case .outdated: _ = try await cache.invalidate(urls: [entry.key.url])
            case .unrelated: break
            }
        } catch { logger.failed("cache update failed", error: error) }
    }

    // MARK: writes

    /// Invalidates stored responses after a write of which the nodes of a fleet learn by its operation (RFC 9111 §4.4).
    /// - Parameter moment: when it was answered; nil for now.
    func invalidate(after response: ResponseHead, to request: RequestHead, at moment: Tick? = nil) async {
        await invalidate(StalePlace.after(response, to: request), at: moment)
    }

    /// Invalidates stored responses after a write that this node alone knows of, here and at the other nodes of its fleet.
    func invalidateEverywhere(after response: ResponseHead, to request: RequestHead) async {
        let places = StalePlace.after(response, to: request)
        await invalidate(places)
        news.tell(places)
    }

    /// Invalidates stored responses, or removes those of a purge.
    /// - Parameter moment: since when they are out of date; nil for now.
    func invalidate(_ places: [StalePlace], at moment: Tick? = nil) async {
        do {
            let urls = places.flatMap { place in if case .url(let url) = place { spellings(of: url) } else { [String]() } }
            if !urls.isEmpty { _ = try await cache.invalidate(urls: urls, at: moment) }
            let trees = places.compactMap { place in if case .tree(let tree) = place { tree } else { nil } }
            if !trees.isEmpty { _ = try await cache.invalidate(trees: trees, at: moment) }
            for case .group(let name, let origin) in places {
                guard let origin = try? RequestHead(url: origin).origin else { continue }
                _ = try await cache.invalidate(groups: [name], origin: origin, at: moment)
            }
            for case .near(let url, let partition) in places { try await markLists(near: url, partition: partition, at: moment) }
            for case .purge(let text) in places {
                if let selection = CacheSelection(text: text) { _ = try await cache.remove(where: .matching(selection)) }
            }
        } catch { logger.failed("cache invalidation failed", error: error) }
    }

    /// Marks the lists that may lack what a client of another node wrote at a URL, as the node of the writer does.
    private func markLists(near url: String, partition: String, at moment: Tick?) async throws {
        guard var request = try? RequestHead(url: url) else { return }
        request.method = .put
        var write = AnsweredWrite(request: request, body: nil, answer: ResponseHead(status: 204), answerBody: nil)
        write.entity = active.routes.plan(for: request).entity
        try await cache.markNearOwnWrite(
            urls: OwnWritePlaces(write).shown(in: active.routes),
            partitions: StoragePartition.readable(by: partition.isEmpty ? nil : partition), at: moment ?? cache.ticks.next())
    }

    /// The URLs that a write invalidates, in the same way.
    func urls(after response: ResponseHead, to request: RequestHead) -> [String] {
        Invalidation.targets(request: request, response: response).flatMap(spellings)
    }

    /// A URL that is out of date, with those under which equivalent queries and presigned reads of it are stored.
    private func spellings(of url: String) -> [String] {
        guard var request = try? RequestHead(url: url) else { return [url] }
        if let presigned = PresignedURL(target: request.target) { request.target = presigned.target }
        let stored = lookup.key(of: request, plan: active.routes.plan(for: request), in: .shared).url
        return stored == url ? [url] : [url, stored]
    }
}
