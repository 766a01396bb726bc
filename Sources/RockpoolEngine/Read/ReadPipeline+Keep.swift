// The step `store`: decides by the head, writes the body while it is relayed, and keeps it whole or as a part (RFC 9111 §3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Returns the upstream's response for the requesting client, and stores it meanwhile if the rules permit.
    /// - Parameter end: Called when storing has finished or failed; not called if the response is not stored at all.
    func keep(
        _ answer: OriginReply, _ sentAt: Timestamp, _ question: Forwarding, _ context: inout RequestContext,
        end: @escaping @Sendable () -> Void
    ) async -> FetchedResponse {
        let receivedAt = now()
        if let suspicion = suspicion(of: answer.head, question, context) {
            return unstored(answer, suspicion.detail, detail: "portal", isSuspect: true, &context)
        }
        let isOwn = await isConfirmed(answer.head, question, context, receivedAt)
        if !isOwn || mayBeAnothers(context) { return unstored(answer, "doubted", detail: "doubted", isSuspect: true, &context) }
        switch storability(of: answer.head, question, context, receivedAt) {
        case .refuse(let reason):
            var alone = unstored(answer, reason.rawValue, &context)
            alone.isLastingRefusal = reason != .goodCopy && answer.head.status < 500
            return alone
        case .store(let plan):
            let category = context.plan.category ?? active.category(named: CategoryGuess.name(for: answer.head)) ?? .ephemeral
            let key = await key(for: answer.head, plan, context)
            guard let writer = await cache.beginWrite(expectedLength: answer.length, category: category, partition: key.partition) else {
                return unstored(answer, lackOfRoom(for: answer.length, in: category), detail: "no-room", &context)
            }
            context.trace.record(.stored)
            let response = stored(answer.head, plan, category, sentAt, receivedAt, context)
            let body = SharedBody(
                answer.body, length: answer.length, writer: writer,
                keeping: keeping(response, length: answer.length, for: context, under: key, end: end), logger: logger)
            return FetchedResponse(
                head: answer.head, length: answer.length, body: .shared(body), claim: body.reader().map { LeaderBody($0) },
                kept: (response, key))
        }
    }

    /// Returns the response for the requesting client only, and records the reason in the events of the URL.
    private func unstored(
        _ answer: OriginReply, _ reason: String, detail: String? = nil, isSuspect: Bool = false, _ context: inout RequestContext
    ) -> FetchedResponse {
        context.trace.record(.notStored(reason))
        cache.note(.notStored(reason), of: context.request.url)
        var alone = FetchedResponse(alone: answer, detail: detail)
        alone.isSuspect = isSuspect
        return alone
    }

    /// The reason why the response is not accepted as the upstream's own; nil if it is accepted.
    private func suspicion(of head: ResponseHead, _ question: Forwarding, _ context: RequestContext) -> PortalSuspicion? {
        let declared = context.plan.policy == .offlineFirst ? context.plan.upstream : nil
        let stored = question.found.map(\.response)
        guard let suspicion = PortalSuspicion.judge(head, to: context.request, stored: stored, isDeclared: declared != nil) else {
            return nil
        }
        guard let declared else { return suspicion }
        let stands = reachability.suspect(
            declared.name, url: context.request.url, sign: suspicion.detail, hasExpectation: declared.hasExpectation, now: now())
        if suspicion == .login { reachability.record(.portalSeen(detail: suspicion.detail), for: declared.name, now: now()) }
        return stands || suspicion == .login ? suspicion : nil
    }

    /// True unless the response is odd and the probe does not confirm the upstream. A response is odd if a portal could have sent it in
    /// place of a good copy: a 200 without the validators that its stored copy has, or a 3xx. Applies to probes with an expectation.
    private func isConfirmed(_ head: ResponseHead, _ question: Forwarding, _ context: RequestContext, _ receivedAt: Timestamp) async -> Bool
    {
        guard context.plan.policy == .offlineFirst, let upstream = context.plan.upstream, upstream.hasExpectation else { return true }
        let good = question.found.map(\.response.head).filter { $0.status == 200 }
        let isOdd =
            switch head.status {
            case 200: !head.hasValidator && good.contains(where: \.hasValidator)
            case 300...399: !good.isEmpty
            default: false
            }
        return isOdd ? await upstreams.confirm(upstream, since: receivedAt) : true
    }

    /// True if something else may respond in place of an `offline-first` upstream. Then nothing is stored.
    func mayBeAnothers(_ context: RequestContext) -> Bool {
        context.plan.policy == .offlineFirst && !reachability.isTrusted(context.plan.upstream?.name)
    }

    /// The equivalence of queries, from the route or from this response.
    func variance(in head: ResponseHead, _ context: RequestContext) -> SearchVariance {
        context.plan.searchVariance ?? SearchVariance(head.fields)
    }

    /// Returns the key for storing. The response's `No-Vary-Search` determines it, and applies to the path from now on.
    private func key(for head: ResponseHead, _ plan: StoragePlan, _ context: RequestContext) async -> CacheKey {
        var request = context.request
        let variance = variance(in: head, context)
        request.target = variance.normalized(target: request.target)
        if variance != context.searchVariance ?? .default {
            let rule = variance.isDefault ? nil : variance.fieldValue
            do { try await cache.noteSearchRule(rule, ofPath: request.urlWithoutQuery) } catch {
                logger.failed("search rule not kept", error)
            }
        }
        return plan.key(for: request, body: context.bodyDigest ?? "")
    }

    func storability(of head: ResponseHead, _ question: Forwarding, _ context: RequestContext, _ receivedAt: Timestamp) -> Storability {
        let rules = StorageContext(
            identity: context.identity.partition, policy: context.plan.policy, strategy: context.plan.strategy, rule: context.plan.store,
            hasBody: context.exchange.body != nil, cachesByBody: context.bodyDigest != nil)
        let decision = Storability.decide(request: context.request, response: head, context: rules)
        guard case .store(let plan) = decision else { return decision }
        // While the upstream is unreachable, an anonymous entry would hide shared ones, so it is compared with all of them.
        let isAnonymous = plan.partition == .anonymous
        let rivals = question.found.filter { $0.key.identity == plan.identity || isAnonymous }.map(\.response)
        if head.status == 206, rivals.contains(where: { PartialResponse.holds($0, all: head) }) { return .refuse(.partial) }
        let isGone = (head.status == 404 || head.status == 410) && (isAnonymous || plan.partition == .shared)
        var isConfirmed = true
        if isGone || (300...399).contains(head.status), let copiedAt = rivals.map(\.responseTime).max() {
            isConfirmed = sightings.confirm(head, of: context.request.url, copiedAt: copiedAt, now: receivedAt)
        }
        if case .refused = Replacement.decide(head, stored: rivals, receivedAt: receivedAt, isConfirmed: isConfirmed) {
            return .refuse(.goodCopy)
        }
        return decision
    }

    private func stored(
        _ head: ResponseHead, _ plan: StoragePlan, _ category: CacheCategory, _ sentAt: Timestamp, _ receivedAt: Timestamp,
        _ context: RequestContext
    ) -> StoredResponse {
        let head = ImpliedVary.completed(head, for: context.request)
        var response = StoredResponse(
            head: plan.head(of: head, receivedAt: receivedAt),
            requestFields: veiled(Vary.selectingFields(response: head, request: context.request) ?? [:]), requestTime: sentAt,
            responseTime: receivedAt, bodyLength: 0, category: category.name,
            assignedTTL: plan.assignedTTL(named: context.plan.category?.ttl))
        // Anonymous responses are served only while the upstream is unreachable, so they are stored as invalidated.
        response.isInvalidated = plan.partition == .anonymous
        return response
    }

    /// Returns the handlers that commit or drop the copy of `response` when its body has ended.
    /// - Parameter length: The announced length of the body, if there is one.
    func keeping(
        _ response: StoredResponse, length: Int64?, for context: RequestContext, under key: CacheKey, end: @escaping @Sendable () -> Void
    ) -> SharedBody.Keeping {
        let request = context.request
        // Portals send redirects and pages: for these a probe must be met after the response arrived, and is sent while the body is
        // received. For other responses an earlier probe suffices, and is checked after the body.
        let isPortals = (300...399).contains(response.head.status) || MediaType.isPage(response.head.fields)
        let confirmation = isPortals ? Task { await isOwn(context, since: response.responseTime) } : nil
        let groups = CacheGroups.names(response.head.fields)
        return SharedBody.Keeping(
            whole: { [self] writer in
                // Another response may have caused a doubt meanwhile.
                if mayBeAnothers(context) { return }
                if let confirmation {
                    guard await confirmation.value else { return }
                } else {
                    guard await isOwn(context, since: response.requestTime - UpstreamClient.confirmedForCopies) else { return }
                }
                do {
                    if response.part == nil {
                        _ = try await cache.commit(writer, key: key, response: response, groups: groups)
                    } else {
                        try await keepPart(writer, under: key, groups) { _ in response }
                    }
                } catch let error as UnprovenBody {
                    guard writer.isJoined else {
                        return logger.warning("not stored: its hash is not what its origin says", metadata: ["url": "\(key.url)"])
                    }
                    try await cache.removeParts(of: key)
                    throw error
                }
            },
            interrupted: { [self] writer in
                guard !mayBeAnothers(context), await isOwn(context, since: response.requestTime - UpstreamClient.confirmedForCopies) else {
                    return
                }
                var part = response
                part.head.fields[.contentLength] = length.map { String($0) }
                try await keepPart(writer, under: key, groups) { [part] received in
                    PartialResponse.interrupted(part.head, to: request, received: received).map { head in
                        var part = part
                        part.head = head
                        return part
                    }
                }
            },
            givenUp: { [self] writer in
                let category = active.category(named: response.category) ?? .ephemeral
                cache.note(.notStored(lackOfRoom(for: length ?? writer.length, in: category)), of: key.url)
            },
            ended: end)
    }

    /// True if the probe confirms that the response came from the upstream; also true if the probe has no expectation, or the policy is
    /// `standard`.
    private func isOwn(_ context: RequestContext, since moment: Timestamp) async -> Bool {
        guard context.plan.policy == .offlineFirst, let upstream = context.plan.upstream else { return true }
        return await upstreams.confirm(upstream, since: moment)
    }

    /// The reason why a body was not stored: larger than any body of its category may be, or no space now.
    private func lackOfRoom(for length: Int64?, in category: CacheCategory) -> String {
        (length ?? 0) > cache.largestBody(in: category) ? "too-large" : "no-room"
    }

    /// Stores the writer's bytes as a part and joins it with other parts.
    private func keepPart(
        _ writer: CacheWriter, under key: CacheKey, _ groups: [String], describe: (Int64) -> StoredResponse?
    ) async throws {
        if let entry = try await cache.commitPart(writer, key: key, groups: groups, describe: describe) { await joinParts(after: entry) }
    }
}

extension ResponseHead {
    /// True if the response can be revalidated (RFC 9110 §8.8).
    var hasValidator: Bool { fields.contains(.eTag) || fields.contains(.lastModified) }
}
