// The step `store`: decided by the head, written while it is read, kept when whole or as the part it is (RFC 9111 §3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension Engine {
    /// The upstream's answer on its way to whoever asked, stored alongside where the rules permit.
    /// - Parameter end: called once the store has it, or will not have it; not when it is not stored at all.
    func keep(
        _ answer: OriginReply, _ sentAt: Timestamp, _ question: Question, _ job: Job, end: @escaping @Sendable () -> Void,
        _ trace: inout Trace
    ) async -> Answer {
        let receivedAt = now()
        if let suspicion = suspicion(of: answer.head, question, job) {
            return unstored(answer, suspicion.detail, detail: "portal", isSuspect: true, job, &trace)
        }
        let isOwn = await isConfirmed(answer.head, question, job, receivedAt)
        if !isOwn || mayBeAnothers(job) { return unstored(answer, "doubted", detail: "doubted", isSuspect: true, job, &trace) }
        switch storability(of: answer.head, question, job, receivedAt) {
        case .refuse(let reason):
            var alone = unstored(answer, reason.rawValue, job, &trace)
            alone.isLastingRefusal = reason != .goodCopy && answer.head.status < 500
            return alone
        case .store(let plan):
            let category = job.plan.category ?? self.category(named: CategoryGuess.name(for: answer.head)) ?? .ephemeral
            let key = await key(for: answer.head, plan, job)
            guard let writer = await cache.beginWrite(expectedLength: answer.length, category: category, partition: key.partition) else {
                return unstored(answer, lackOfRoom(for: answer.length, in: category), detail: "no-room", job, &trace)
            }
            trace.record(.stored)
            let response = stored(answer.head, plan, category, sentAt, receivedAt, job)
            let body = SharedBody(
                answer.body, length: answer.length, writer: writer,
                keeping: keeping(response, length: answer.length, for: job, under: key, end: end), logger: logger)
            return Answer(
                head: answer.head, length: answer.length, body: .shared(body), claim: body.reader().map { Claim($0) },
                kept: (response, key))
        }
    }

    /// The answer for whoever asked alone; the reason is remembered of its URL.
    private func unstored(
        _ answer: OriginReply, _ reason: String, detail: String? = nil, isSuspect: Bool = false, _ job: Job, _ trace: inout Trace
    ) -> Answer {
        trace.record(.notStored(reason))
        cache.note(.notStored(reason), of: job.request.url)
        var alone = Answer(alone: answer, detail: detail)
        alone.isSuspect = isSuspect
        return alone
    }

    /// Why the answer is not taken for the upstream's own; nil when it is.
    private func suspicion(of head: ResponseHead, _ question: Question, _ job: Job) -> PortalSuspicion? {
        let declared = job.plan.policy == .offlineFirst ? job.plan.upstream : nil
        let stored = question.found.map(\.response)
        guard let suspicion = PortalSuspicion.judge(head, to: job.request, stored: stored, isDeclared: declared != nil) else { return nil }
        guard let declared else { return suspicion }
        let stands = reachability.suspect(
            declared.name, url: job.request.url, sign: suspicion.detail, hasExpectation: declared.hasExpectation, now: now())
        if suspicion == .login { reachability.record(.portalSeen(detail: suspicion.detail), for: declared.name, now: now()) }
        return stands || suspicion == .login ? suspicion : nil
    }

    /// Whether an answer that a portal could have given, in the place of a good copy, is the upstream's own, by a probe that says what it
    /// expects: one that has lost the validators its stored copy has, or a redirect.
    private func isConfirmed(_ head: ResponseHead, _ question: Question, _ job: Job, _ receivedAt: Timestamp) async -> Bool {
        guard job.plan.policy == .offlineFirst, let upstream = job.plan.upstream, upstream.hasExpectation else { return true }
        let good = question.found.map(\.response.head).filter { $0.status == 200 }
        let isOdd =
            switch head.status {
            case 200: !head.hasValidator && good.contains(where: \.hasValidator)
            case 300...399: !good.isEmpty
            default: false
            }
        return isOdd ? await confirm(upstream, since: receivedAt) : true
    }

    /// Whether something else may answer in the place of a declared upstream: nothing is stored then.
    func mayBeAnothers(_ job: Job) -> Bool { job.plan.policy == .offlineFirst && !reachability.isTrusted(job.plan.upstream?.name) }

    /// Which queries mean the same, as the route or this answer says.
    func variance(in head: ResponseHead, _ job: Job) -> SearchVariance { job.plan.searchVariance ?? SearchVariance(head.fields) }

    /// The key to store under, by what the answer says of its query (No-Vary-Search), which holds for the path from now on.
    private func key(for head: ResponseHead, _ plan: StoragePlan, _ job: Job) async -> CacheKey {
        var request = job.request
        let variance = variance(in: head, job)
        request.target = variance.normalized(target: request.target)
        if variance != job.searchVariance ?? .default {
            let rule = variance.isDefault ? nil : variance.fieldValue
            do { try await cache.noteSearchRule(rule, ofPath: request.urlWithoutQuery) } catch {
                logger.failed("search rule not kept", error)
            }
        }
        return plan.key(for: request, body: job.bodyDigest ?? "")
    }

    func storability(of head: ResponseHead, _ question: Question, _ job: Job, _ receivedAt: Timestamp) -> Storability {
        let context = StorageContext(
            identity: job.identity.partition, policy: job.plan.policy, strategy: job.plan.strategy, rule: job.plan.store,
            hasBody: job.exchange.body != nil, cachesByBody: job.bodyDigest != nil)
        let decision = Storability.decide(request: job.request, response: head, context: context)
        guard case .store(let plan) = decision else { return decision }
        // What is kept for nobody in particular would hide what is shared, while the upstream is away.
        let isAnonymous = plan.partition == .anonymous
        let rivals = question.found.filter { $0.key.identity == plan.identity || isAnonymous }.map(\.response)
        if head.status == 206, rivals.contains(where: { PartialResponse.holds($0, all: head) }) { return .refuse(.partial) }
        let isGone = (head.status == 404 || head.status == 410) && (isAnonymous || plan.partition == .shared)
        var isConfirmed = true
        if isGone || (300...399).contains(head.status), let copiedAt = rivals.map(\.responseTime).max() {
            isConfirmed = sightings.confirm(head, of: job.request.url, copiedAt: copiedAt, now: receivedAt)
        }
        if case .refused = Replacement.decide(head, stored: rivals, receivedAt: receivedAt, isConfirmed: isConfirmed) {
            return .refuse(.goodCopy)
        }
        return decision
    }

    private func stored(
        _ head: ResponseHead, _ plan: StoragePlan, _ category: RockpoolCore.Category, _ sentAt: Timestamp, _ receivedAt: Timestamp,
        _ job: Job
    ) -> StoredResponse {
        let head = ImpliedVary.completed(head, for: job.request)
        var response = StoredResponse(
            head: plan.head(of: head, receivedAt: receivedAt),
            requestFields: veiled(Vary.selectingFields(response: head, request: job.request) ?? [:]), requestTime: sentAt,
            responseTime: receivedAt, bodyLength: 0, category: category.name, assignedTTL: plan.assignedTTL(named: job.plan.category?.ttl))
        // Nobody's in particular: kept for the time offline, never another's answer while the upstream can be asked.
        response.isInvalidated = plan.partition == .anonymous
        return response
    }

    /// What becomes of the copy of `response` once its body has ended.
    /// - Parameter length: announced of the body, where it was.
    func keeping(
        _ response: StoredResponse, length: Int64?, for job: Job, under key: CacheKey, end: @escaping @Sendable () -> Void
    ) -> SharedBody.Keeping {
        let request = job.request
        // What portals give is asked about while its body comes; anything else leaves the probe some time.
        let isPortals = (300...399).contains(response.head.status) || MediaType.isPage(response.head.fields)
        let confirmation = isPortals ? Task { await isOwn(job, since: response.responseTime) } : nil
        let groups = CacheGroups.names(response.head.fields)
        return SharedBody.Keeping(
            whole: { [self] writer in
                // Doubt may have come with another answer meanwhile.
                if mayBeAnothers(job) { return }
                if let confirmation {
                    guard await confirmation.value else { return }
                } else {
                    guard await isOwn(job, since: response.requestTime - Self.confirmedForCopies) else { return }
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
                if mayBeAnothers(job) { return }
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
                let category = category(named: response.category) ?? .ephemeral
                cache.note(.notStored(lackOfRoom(for: length ?? writer.length, in: category)), of: key.url)
            },
            ended: end)
    }

    /// Whether a copy of what came is the upstream's own, as far as a probe tells that names what it expects.
    private func isOwn(_ job: Job, since moment: Timestamp) async -> Bool {
        guard job.plan.policy == .offlineFirst, let upstream = job.plan.upstream else { return true }
        return await confirm(upstream, since: moment)
    }

    /// Why a body finds no room: it is longer than any of its category may be, or there is none now.
    private func lackOfRoom(for length: Int64?, in category: RockpoolCore.Category) -> String {
        (length ?? 0) > cache.largestBody(in: category) ? "too-large" : "no-room"
    }

    /// Stores what is in the writer as a part, and joins it to others.
    private func keepPart(
        _ writer: CacheWriter, under key: CacheKey, _ groups: [String], describe: (Int64) -> StoredResponse?
    ) async throws {
        if let entry = try await cache.commitPart(writer, key: key, groups: groups, describe: describe) { await joinParts(after: entry) }
    }
}

extension ResponseHead {
    /// Whether it can be asked about again (RFC 9110 §8.8).
    var hasValidator: Bool { fields.contains(.eTag) || fields.contains(.lastModified) }
}
