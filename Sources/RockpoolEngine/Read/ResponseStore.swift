// The step `store`: decides by the head, writes the body while it is relayed, and commits it whole or as a part (RFC 9111 §3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Stores responses and their parts, if the rules permit.
struct ResponseStore: Sendable {
    let cache: CacheStore
    let lookup: EntryLookup
    let portal: PortalCheck
    /// The configuration in force.
    let active: ActiveConfiguration
    let learning: ResourceLearning
    let logger: Logger
    let now: @Sendable () -> Timestamp
    let sightings = Sightings()
    let admission = Admission()
    /// One task at a time joins the stored parts of a key.
    let joins = KeyTurns<CacheKey>()

    /// Returns the upstream's response for the requesting client, and stores it meanwhile if the rules permit.
    /// - Parameters:
    ///   - found: The stored entries that the request may read.
    ///   - end: Called when storing has finished or failed; not called if the response is not stored at all.
    func store(
        _ received: OriginReply, sentAt: Moment, among found: [CacheEntry], for context: inout RequestContext,
        onEnd end: @escaping @Sendable () -> Void
    ) async -> FetchedResponse {
        let (receivedAt, head, stored) = (now(), received.head, found.map(\.response))
        let suspicion = portal.suspicion(of: received, to: context, stored: stored)
        if let suspicion, suspicion.concernsReply {
            return unstored(received, reason: suspicion.detail, detail: "portal", isSuspect: true, for: &context)
        }
        let isAccepted = await portal.accepts(head, plan: context.plan, stored: stored, receivedAt: receivedAt)
        if !isAccepted || portal.isDoubted(plan: context.plan) {
            return unstored(received, reason: "doubted", detail: "doubted", isSuspect: true, for: &context)
        }
        if let suspicion { return unstored(received, reason: suspicion.detail, detail: "portal", for: &context) }
        switch storability(of: head, isEmpty: received.isEmpty == true, for: context, among: found, receivedAt: receivedAt) {
        case .refuse(let reason):
            var alone = unstored(received, reason: reason.rawValue, for: &context)
            if reason == .noStore { learning.noteUnstored(context.request, head, plan: context.plan) }
            alone.isLastingRefusal = reason != .goodCopy && head.status < 500
            return alone
        case .store(var plan):
            let category = category(of: head, context.plan)
            var key = await key(for: head, plan: plan, context: context)
            var reserved = isOverriddenShare(plan, of: head, for: context) ? context.identity.partition : nil
            if reserved == nil, let owner = plan.owner, await lookup.isOfAnother(key, than: owner) { reserved = owner }
            if let reserved {
                plan = StoragePlan(partition: .identity(reserved), stripped: plan.stripped, allowsHeuristic: false, isForGet: plan.isForGet)
                key = CacheKey(key, in: plan.partition)
            }
            guard !found.isEmpty || admission.admits(key, to: category) else {
                return unstored(received, reason: "min-uses", for: &context)
            }
            guard let writer = await cache.beginWrite(expectedLength: received.length, category: category, for: key) else {
                return unstored(received, reason: lackOfRoom(for: received.length, in: category, of: key), detail: "no-room", for: &context)
            }
            context.trace.record(.stored)
            let response = response(
                with: head, plan: plan, category: category, sentAt: sentAt, receivedAt: receivedAt, for: context, beside: stored)
            let body = SharedBody(
                received.body, length: received.length, writer: writer,
                storing: storing(response, length: received.length, for: context, under: key, onEnd: end), logger: logger)
            var fetched = FetchedResponse(
                head: head, length: received.length, body: .shared(body), claim: body.reader().map { LeaderBody($0) },
                copy: (response, key))
            fetched.request = received.request
            return fetched
        }
    }

    /// True if only a promise to validate lets other clients have a response, and the route overrides that promise: then the client has the copy
    /// alone (RFC 9111 §3.5).
    func isOverriddenShare(_ plan: StoragePlan, of head: ResponseHead, for context: RequestContext) -> Bool {
        guard context.plan.route?.ttl?.overrides == true, plan.partition == .shared, context.identity.partition?.isEmpty == false else {
            return false
        }
        return plan.owner != nil || CacheControl.governing(in: head.fields).directives.forbidsStale
    }

    /// The category of a response: of its route, or else by its type.
    func category(of head: ResponseHead, _ plan: RoutePlan) -> CacheCategory {
        plan.category ?? active.category(named: CategoryGuess.name(for: head)) ?? .ephemeral
    }

    /// Returns the response for the requesting client only, and records the reason in the events of the URL.
    private func unstored(
        _ received: OriginReply, reason: String, detail: String? = nil, isSuspect: Bool = false, for context: inout RequestContext
    ) -> FetchedResponse {
        context.trace.record(.notStored(reason))
        cache.note(.notStored(reason), of: context.request.url)
        var alone = FetchedResponse(alone: received, detail: detail)
        alone.isSuspect = isSuspect
        return alone
    }

    /// Returns the key for storing. The response's `No-Vary-Search` determines it, and applies to the path from now on.
    private func key(for head: ResponseHead, plan: StoragePlan, context: RequestContext) async -> CacheKey {
        var request = context.request
        let variance = head.searchVariance(plan: context.plan)
        request.target = variance.normalized(target: context.presigned?.target ?? request.target)
        if variance != context.searchVariance ?? .default {
            let rule = variance.isDefault ? nil : variance.fieldValue
            do { try await cache.noteSearchRule(rule, ofPath: request.urlWithoutQuery) } catch {
                logger.failed("search rule not stored", error: error)
            }
        }
        return plan.key(for: request, body: context.keyBody)
    }

    /// Decides whether a response may be stored, and in which partition (RFC 9111 §3; docs/caching.md#good-copies).
    /// - Parameter isEmpty: true if it is known to have no content.
    func storability(
        of head: ResponseHead, isEmpty: Bool = false, for context: RequestContext, among found: [CacheEntry], receivedAt: Timestamp
    ) -> Storability {
        let rules = StorageContext(
            identity: context.identity.partition, policy: context.plan.policy, strategy: context.plan.strategy, rule: context.plan.store,
            hasBody: context.exchange.body != nil, cachesByBody: context.bodyDigest != nil,
            isReadByBody: context.plan.route?.isReadByBody == true, assignsFreshness: context.plan.assignedTTL != nil,
            overridesFreshness: context.plan.route?.ttl?.overrides == true, keeping: context.plan.keeping)
        let decision = Storability.decide(request: context.request, response: head, context: rules)
        guard case .store(let plan) = decision else { return decision }
        // While the upstream is unreachable, an anonymous entry would hide shared ones, so it is compared with all of them.
        let isAnonymous = plan.partition == .anonymous
        let rivals = found.filter { $0.key.identity == plan.identity || isAnonymous }.map(\.response)
        if head.status == 206, rivals.contains(where: { PartialResponse.holds($0, all: head) }) { return .refuse(.partial) }
        var isConfirmed = true
        if Replacement.needsConfirmation(head, isEmpty: isEmpty, stored: rivals), let copiedAt = rivals.map(\.responseTime).max() {
            let wishes = CacheControl(request: context.request.fields)
            isConfirmed = sightings.confirm(
                head, of: context.request.url, in: plan.identity, copiedAt: copiedAt,
                isReload: wishes.noCache != .absent || wishes.maxAge == .zero, now: receivedAt)
        }
        let replacement = Replacement.decide(head, isEmpty: isEmpty, stored: rivals, receivedAt: receivedAt, isConfirmed: isConfirmed)
        if case .refused = replacement { return .refuse(.goodCopy) }
        return decision
    }

    func response(
        with head: ResponseHead, plan: StoragePlan, category: CacheCategory, sentAt: Moment, receivedAt: Timestamp,
        for context: RequestContext, beside stored: [StoredResponse] = []
    ) -> StoredResponse {
        let head = ImpliedVary.completed(
            head, for: context.request, selectsType: stored.contains { !Vary.permitsType(of: $0, context.request) },
            isPrivate: CacheControl.governing(in: head.fields).directives.isPrivate == .all)
        var response = StoredResponse(
            head: plan.head(of: head, receivedAt: receivedAt),
            requestFields: lookup.veiled(Vary.selectingFields(response: head, request: context.request) ?? [:]), requestTime: sentAt.at,
            asked: sentAt.tick, responseTime: receivedAt, bodyLength: 0, category: category.name,
            assignedTTL: plan.assignedTTL(named: context.plan.assignedTTL))
        // Anonymous responses are served only while the upstream is unreachable, so they are stored as invalidated.
        response.isInvalidated = plan.partition == .anonymous
        response.owner = plan.owner
        response.pack = context.gitRequest.flatMap { StoredPack($0) }
        response.adopt(context.plan.route?.ttl)
        return response
    }

    /// Returns the response as one that also varies by the fields whose values its body repeats.
    func varying(_ response: StoredResponse, by watch: EchoWatch?) -> StoredResponse {
        guard let watch, case let names = watch.end(), !names.isEmpty else { return response }
        var response = response
        response.head = ImpliedVary.varying(response.head, by: names)
        response.select(lookup.veiled(Vary.selectingFields(response: response.head, request: watch.request) ?? [:]))
        return response
    }

    /// Returns the handlers that commit or drop the copy of `response` when its body has ended.
    /// - Parameter length: The announced length of the body, if there is one.
    func storing(
        _ response: StoredResponse, length: Int64?, for context: RequestContext, under key: CacheKey,
        onEnd end: @escaping @Sendable () -> Void
    ) -> SharedBody.Storing {
        let (request, plan) = (context.request, context.plan)
        // Portals send redirects and pages: for these a probe must be met after the response arrived, and is sent while the body is
        // received. For other responses an earlier probe suffices, and is checked after the body.
        let isPortals = (300...399).contains(response.head.status) || MediaType.isPage(response.head.fields)
        let confirmation = isPortals ? Task { await portal.isConfirmed(plan: plan, since: response.responseTime) } : nil
        let groups = CacheGroups.all(in: response.head.fields)
        // A server of git names its program, which may be the client's; a manifest names its type, which the client accepts.
        let watch = plan.route?.kind == .git || plan.route?.kind == .oci ? nil : EchoWatch(request, answeredBy: response.head)
        return SharedBody.Storing(
            whole: { [self] writer in
                // Another response may have caused a doubt meanwhile.
                if portal.isDoubted(plan: plan) { return }
                if let confirmation {
                    guard await confirmation.value else { return }
                } else {
                    guard await portal.isConfirmed(plan: plan, since: response.requestTime - UpstreamClient.confirmedForCopies) else {
                        return
                    }
                }
                let response = varying(response, by: watch)
                do {
                    if response.part == nil {
                        learning.note(try await cache.commit(writer, key: key, response: response, groups: groups), plan: plan)
                    } else {
                        try await storePart(writer, under: key, groups: groups) { _ in response }
                    }
                } catch let error as UnprovenBody {
                    guard writer.isJoined else {
                        return logger.warning(
                            "not stored: its hash is not what its origin says",
                            metadata: ["url": "\(SecretParameters.redacted(url: key.url))"])
                    }
                    try await cache.removeParts(of: key)
                    throw error
                }
            },
            interrupted: { [self] writer in
                guard !portal.isDoubted(plan: plan),
                    await portal.isConfirmed(plan: plan, since: response.requestTime - UpstreamClient.confirmedForCopies)
                else {
                    return
                }
                var part = varying(response, by: watch)
                part.head.fields[.contentLength] = length.map { String($0) }
                try await storePart(writer, under: key, groups: groups) { [part] received in
                    PartialResponse.interrupted(part.head, to: request, received: received).map { head in
                        var part = part
                        part.head = head
                        return part
                    }
                }
            },
            givenUp: { [self] writer in
                let category = active.category(named: response.category) ?? .ephemeral
                cache.note(.notStored(lackOfRoom(for: length ?? writer.length, in: category, of: key)), of: key.url)
            },
            ended: end, watch: watch, onAbort: active.configuration.onAbort(of: plan))
    }

    /// The reason why a body was not stored: larger than any body of its category or upstream may be, or no space now.
    func lackOfRoom(for length: Int64?, in category: CacheCategory, of key: CacheKey) -> String {
        (length ?? 0) > cache.largestBody(in: category, of: key.url) ? "too-large" : "no-room"
    }

    /// Stores the writer's bytes as a part and joins it with other parts.
    private func storePart(
        _ writer: CacheWriter, under key: CacheKey, groups: [String], describe: (Int64) -> StoredResponse?
    ) async throws {
        if let entry = try await cache.commitPart(writer, key: key, groups: groups, describe: describe) { await joinParts(after: entry) }
    }
}

// MARK: - Parts

/// Completes a stored beginning with the fetched rest, and joins stored parts (RFC 9111 §3.4).
extension ResponseStore {
    /// Combines the stored beginning and a 206 with the rest into the whole, and starts to store it; nil if they do not fit together or the
    /// store has no space. The rest begins with the last stored byte, which must be the same (`PartialResponse.completion`).
    func completed(
        _ entry: CacheEntry?, by received: OriginReply, sentAt: Moment, for context: RequestContext,
        onEnd end: @escaping @Sendable () -> Void
    ) async -> FetchedResponse? {
        guard received.head.status == 206, let entry, let category = active.category(named: entry.response.category),
            let (response, held) = whole(entry.response, with: received.head, sentAt: sentAt),
            Revalidation.mayStay(response, in: entry.key.partition, rule: context.plan.store),
            let writer = await cache.beginWrite(
                joining: [(entry, 0..<held)], expectedLength: response.bodyLength, category: category),
            await continues(received.body, from: writer, at: held)
        else { return nil }
        let body = SharedBody(
            received.body, length: response.bodyLength, prefix: held, writer: writer,
            storing: storing(response, length: response.bodyLength, for: context, under: entry.key, onEnd: end), logger: logger)
        return FetchedResponse(
            head: response.head, length: response.bodyLength, body: .shared(body), claim: body.reader().map { LeaderBody($0) },
            copy: (response, entry.key))
    }

    /// Returns the combined response and the length of the stored beginning; nil if the two belong to different representations, or if the
    /// rest does not range from the last stored byte to the end.
    private func whole(_ stored: StoredResponse, with head: ResponseHead, sentAt: Moment) -> (StoredResponse, Int64)? {
        guard let combined = PartialResponse.combined(stored, with: head, sent: sentAt, responseTime: now()),
            combined.response.part == nil, combined.pieces.count == 2, case .stored(let held) = combined.pieces[0],
            case .received(let rest) = combined.pieces[1], rest.lowerBound == 1
        else { return nil }
        return (combined.response, Int64(held.count))
    }

    /// True if the received body begins with the last stored byte, which is then removed from it.
    private func continues(_ body: BodyPipe, from writer: CacheWriter, at held: Int64) async -> Bool {
        guard var last = try? await writer.read(at: held - 1, upTo: 1), let expected = last.readInteger(as: UInt8.self),
            var chunk = try? await body.next(), chunk.readInteger(as: UInt8.self) == expected
        else { return false }
        body.putBack(chunk)
        return true
    }

    /// Joins stored parts after a new one was stored. Returns when they are joined, so that a client that has received the last byte finds
    /// the whole stored; a large body is joined in the background.
    func joinParts(after part: CacheEntry) async {
        guard let found = await joint(after: part) else { return }
        if found.joint.response.bodyLength <= Self.joinedInline { return await join(after: part) }
        Task { await join(after: part) }
    }

    /// Maximum number of bytes copied while a client waits for its last chunk: about 50 ms.
    private static let joinedInline = ByteCount.mib(64).bytes

    private func joint(after part: CacheEntry) async -> (joint: PartialResponse.Joint, parts: [CacheEntry])? {
        let parts = await lookup.entries(under: [part.key]).filter { $0.response.requestFields == part.response.requestFields }
        guard let index = parts.firstIndex(where: { $0.id == part.id }),
            let joint = PartialResponse.joint(parts.map(\.response), after: index)
        else { return nil }
        return (joint, parts)
    }

    /// Joins the parts into the whole if no byte is missing, otherwise the part with its neighbours where copying is cheap. If the joined
    /// whole contradicts the origin's digests, its parts are removed.
    private func join(after part: CacheEntry) async {
        await joins.enter(key: part.key)
        defer { joins.leave(key: part.key) }
        guard let (joint, parts) = await joint(after: part), let category = active.category(named: part.response.category),
            let writer = await cache.beginWrite(
                joining: joint.slices.map { (parts[$0.index], $0.range) }, expectedLength: joint.response.bodyLength, category: category)
        else { return }
        let groups = CacheGroups.all(in: joint.response.head.fields)
        do {
            if joint.response.part == nil {
                _ = try await cache.commit(writer, key: part.key, response: joint.response, groups: groups)
            } else {
                try await cache.commitPart(writer, key: part.key, groups: groups) { _ in joint.response }
            }
        } catch is WholeIsStored {
            return
        } catch is UnprovenBody {
            logger.warning(
                "stored parts do not make the whole that their origin names; they are dropped",
                metadata: ["url": "\(SecretParameters.redacted(url: part.key.url))"])
            try? await cache.removeParts(of: part.key)
        } catch {
            logger.failed("stored parts could not be joined", error: error)
        }
    }

    // MARK: - Heads

    /// Stores the head of a response to HEAD where nothing of the response to GET is stored, so that HEAD is answered while the upstream is
    /// unreachable. A later response to GET takes its place.
    /// - Parameter length: of a GET's body, in bytes; nil if it was not announced.
    /// - Returns: true if it is being stored.
    func keepHead(
        _ head: ResponseHead, length: Int64?, sentAt: Moment, for context: RequestContext, found: [CacheEntry]
    ) -> Bool {
        let receivedAt = now()
        guard context.request.method == .head, context.plan.policy == .offlineFirst, context.exchange.body == nil,
            found.allSatisfy(\.response.isHeadOnly), !portal.isDoubted(plan: context.plan), head.status != 206
        else { return false }
        var asGet = context
        asGet.exchange.request.method = .get
        guard case .store(let plan) = storability(of: head, for: asGet, among: [], receivedAt: receivedAt) else { return false }
        let category = category(of: head, context.plan)
        let key = asGet.key(in: plan.partition).ofHead
        guard !found.isEmpty || admission.admits(key, to: category) else { return false }
        var response = response(with: head, plan: plan, category: category, sentAt: sentAt, receivedAt: receivedAt, for: asGet)
        response.head.fields[.contentLength] = length.map { String($0) }
        response.isHeadOnly = true
        Task { [response] in
            guard await portal.isConfirmed(plan: context.plan, since: sentAt.at - UpstreamClient.confirmedForCopies) else { return }
            do { _ = try await cache.replace(key, by: response, body: ByteBuffer(), category: category) } catch { logger.notStored(error) }
        }
        return true
    }
}

extension ResponseHead {
    /// The equivalence of queries, from the route or from this response.
    func searchVariance(plan: RoutePlan) -> SearchVariance { plan.searchVariance ?? SearchVariance(fields) }
}

// MARK: - Admission

/// Decides from which request on a response is stored (docs/caching.md#categories, `min_uses`).
final class Admission: Sendable {
    /// Number of keys in each generation of the counts.
    private static let keyCount = 16_384

    private let counts = Mutex(UseCounts(capacity: Admission.keyCount))

    /// Counts a request for a key that is not stored. Returns true if its response is stored now.
    func admits(_ key: CacheKey, to category: CacheCategory) -> Bool {
        category.minUses <= 1 || counts.withLock { $0.count(key.text) } >= category.minUses
    }
}
