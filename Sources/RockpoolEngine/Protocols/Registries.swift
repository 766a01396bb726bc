// Answers container clients on routes with `kind: oci`: content by its digest is stored once for all whom the registry lets in; whom it lets in is
// asked of the registry, and remembered for the time while it is away (docs/guide/programs.md#registries).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The reads from registries. Nothing is served from the partition of registries before the client was let in.
final class Registries: Sendable {
    /// The longest form with a question for a token.
    private static let formLimit = Int.kib(64)

    let cache: CacheStore
    let data: DataStore
    let reads: ReadPipeline
    /// The configuration in force.
    let active: ActiveConfiguration
    let logger: Logger
    let now: @Sendable () -> Timestamp
    let admissions = Mutex(RegistryAdmissions())

    init(
        cache: CacheStore, data: DataStore, reads: ReadPipeline, active: ActiveConfiguration, logger: Logger,
        now: @escaping @Sendable () -> Timestamp
    ) {
        (self.cache, self.data, self.reads, self.active, self.logger, self.now) = (cache, data, reads, active, logger, now)
    }

    /// Reads the form of a question for a token.
    /// - Throws: The failure that interrupted the body.
    static func route(_ exchange: inout Exchange, plan: RoutePlan) async throws(TransferFailure) -> KeyingBody? {
        guard !plan.isWrite, exchange.request.method == .post, let bytes = try await exchange.collected(upTo: formLimit) else { return nil }
        return KeyingBody(bytes, for: exchange.request)
    }

    // MARK: reads

    func read(_ context: inout RequestContext) async -> Reply {
        var reply = await answer(&context)
        // Each later one is asked about, too.
        reply.passed = nil
        return reply
    }

    private func answer(_ context: inout RequestContext) async -> Reply {
        let asked = RegistryRequest(context.request)
        if let authorization = context.request.fields[.authorization], RegistryToken.isOne(authorization) {
            return await answer(made: authorization, to: asked, for: &context)
        }
        let isRead = context.request.method == .get || context.request.method == .head
        if asked == .token { return await token(for: &context) }
        guard let repository = asked.repository, isRead, context.plan.strategy != .networkOnly, context.plan.store != .never else {
            return await reads.readServerState(&context)
        }
        let (client, place) = (client(of: context), RegistryPlace(context.request.origin, repository, asked))
        var digest: String?
        var isAway = !context.isReachable
        let isAdmitted = admissions.withLock { $0.isAdmitted(client.credential, to: place.url, now: now()) }
        if !isAway, !isAdmitted || asked.isTag {
            switch await ask(asked, at: place, by: client, for: &context) {
            case .yes(let head, let length):
                if context.request.method == .head, !asked.isListing { return passed(head, length: length, for: &context) }
                if asked.isTag { digest = head.manifestDigest }
            case .no: return await pass(&context)
            case .away: isAway = true
            }
        }
        if isAway {
            guard await wasAdmitted(client, to: place, plan: context.plan) else { return await pass(&context) }
            if asked.isTag { digest = await kept(tagOf: context) }
        }
        return await serve(asked, digest, at: place, isAway: isAway, for: &context)
    }

    /// Serves or fetches for a client that was let in.
    /// - Parameter digest: that of the manifest that a tag names, if it is known.
    private func serve(
        _ asked: RegistryRequest, _ digest: String?, at place: RegistryPlace, isAway: Bool, for context: inout RequestContext
    ) async -> Reply {
        var inner = context
        switch (asked, digest) {
        case (.tag, let digest?): inner = context.at(place.path + "manifests/" + digest).ofContent
        case (.content, _): inner = context.withoutMirror.ofContent
        default: inner = context.ofRepository
        }
        var reply = await reads.readServerState(&inner)
        context.trace = inner.trace
        guard reply.head.status == 200 || reply.head.status == 206 else { return reply }
        if inner.plan.keeping == .contentInOwnPartition, reply.head.fields[.dockerContentDigest] == nil {
            reply.head.fields[.dockerContentDigest] = inner.request.path.split(separator: "/").last.map { String($0) }
        }
        if isAway, asked.isTag {
            context.trace.verdict = .stale
            context.trace.cacheStatus = CacheStatus(hit: true, detail: "offline")
        }
        return reply
    }

    /// Passes a request on; nothing is stored, and nothing stored is served, but a challenge.
    private func pass(_ context: inout RequestContext) async -> Reply {
        context.plan.strategy = .networkOnly
        let reply = await reads.readServerState(&context)
        guard context.isOwnProblem(reply), let challenge = await challenge(to: context) else { return reply }
        context.trace.verdict = .stale
        context.trace.cacheStatus = CacheStatus(hit: true, detail: "offline")
        return Reply(head: challenge, body: .none(length: 0), trace: context.trace)
    }

    private func passed(_ head: ResponseHead, length: Int64?, for context: inout RequestContext) -> Reply {
        context.trace.verdict = .pass
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .request, fwdStatus: head.status)
        return Reply(head: head, body: .none(length: length), trace: context.trace)
    }

    // MARK: who is let in

    /// The word of a registry about a client.
    private enum Word {
        case yes(ResponseHead, length: Int64?)
        /// It refuses, or has no such content, or does not answer such a question.
        case no
        /// It cannot be reached, fails, or is too busy.
        case away
    }

    /// Asks the registry whether it lets the client have what it asks for.
    private func ask(
        _ asked: RegistryRequest, at place: RegistryPlace, by client: RegistryClient, for context: inout RequestContext
    ) async -> Word {
        var question = context
        question.exchange.request = context.withoutMirror.request.unconditional
        // Lists are not asked about by HEAD everywhere.
        question.exchange.request.method = asked.isListing ? .get : .head
        question.exchange.interim = { _ in }
        defer { context.trace = question.trace }
        do {
            let answer = try await reads.fetch(question.request, body: .none, for: &question)
            if question.request.method == .head { try? await answer.body.drain() } else { answer.body.abandon() }
            let isDoubtful =
                reads.portal.suspicion(of: answer, to: question, stored: []) != nil || reads.portal.isDoubted(plan: question.plan)
            switch answer.head.status {
            case 200:
                guard !isDoubtful, answer.head.isRegistrys else { return .away }
                await admit(client, to: place, plan: context.plan)
                if asked.isTag { await keep(answer.head, asTagOf: context) }
                return .yes(answer.head, length: answer.length)
            case 401, 403:
                if !isDoubtful { await refuse(client, at: place, because: answer.head) }
                return .no
            case 429, 500...: return .away
            default: return .no
            }
        } catch {
            question.noteFailure(error)
            return .away
        }
    }

    private func admit(_ client: RegistryClient, to place: RegistryPlace, plan: RoutePlan) async {
        admissions.withLock { $0.note(true, client.credential, to: place.url, token: client.token, now: now()) }
        await keep(ResponseHead(status: 204), under: place.key(of: client.holder), plan: plan)
    }

    private func refuse(_ client: RegistryClient, at place: RegistryPlace, because head: ResponseHead) async {
        admissions.withLock { $0.note(false, client.credential, to: place.url, token: nil, now: now()) }
        // A token that has ended says nothing of its holder.
        if head.fields[values: .wwwAuthenticate].contains(where: { $0.contains("error=\"invalid_token\"") }) { return }
        await forget(place.key(of: client.holder))
    }

    /// True if the last answer of the registry was a yes that still counts. A token opens only what it opened itself.
    private func wasAdmitted(_ client: RegistryClient, to place: RegistryPlace, plan: RoutePlan) async -> Bool {
        if client.holder != client.credential, !admissions.withLock({ $0.wasAdmitted(client.credential, to: place.url) }) { return false }
        return await kept(place.key(of: client.holder), plan: plan) != nil
    }

    private func client(of context: RequestContext) -> RegistryClient {
        let named = context.plan.upstream?.identity.fieldName
        let fields = context.request.fields.filter { $0.name == named || SecretFields.identifies($0.name) }
        let lines = fields.map { "\($0.name.canonicalName): \($0.value)" }.sorted()
        let credential = secretName("client", context.request.origin.url + "\n" + lines.joined(separator: "\n"))
        guard fields.count == 1, let value = context.request.fields[.authorization], value.prefix(7).lowercased() == "bearer " else {
            return RegistryClient(credential: credential, token: nil, holder: credential)
        }
        let token = secretName("bearer", String(value.dropFirst(7).drop { $0 == " " }))
        return RegistryClient(
            credential: credential, token: token, holder: admissions.withLock { $0.holder(ofToken: token) } ?? credential)
    }

    /// A name for a secret, from which it cannot be derived.
    func secretName(_ kind: String, _ secret: String) -> String { data.identityName("registry\n\(kind)\n\(secret)".utf8) }

    // MARK: tokens of Rockpool

    /// Answers a client that has a token of Rockpool. It opens only what is stored; a registry never sees it.
    private func answer(made authorization: String, to asked: RegistryRequest, for context: inout RequestContext) async -> Reply {
        let token = RegistryToken(authorization: authorization) { data.identityName($0) }
        let isRead = context.request.method == .get || context.request.method == .head
        if let token, token.expiresAt > now(), isRead, context.plan.store != .never {
            if asked == .base, !context.isReachable { return base(&context) }
            // What a tag names, and what there is, is asked for each time: not by this token.
            if let repository = asked.repository, token.repositories.contains(repository),
                !context.isReachable || !asked.isTag && !asked.isListing
            {
                let place = RegistryPlace(context.request.origin, repository, asked)
                if await kept(place.key(of: token.holder), plan: context.plan) != nil {
                    var stored = context
                    stored.exchange.request.fields[.authorization] = nil
                    stored.plan.strategy = .cacheOnly
                    let digest = asked.isTag ? await kept(tagOf: context) : nil
                    let reply = await serve(asked, digest, at: place, isAway: true, for: &stored)
                    context.trace = stored.trace
                    if reply.head.status < 400 { return reply }
                }
                if !context.isReachable { return away(&context) }
            }
        }
        guard let challenge = await challenge(to: context) else {
            return context.isReachable ? await passWithoutCredential(&context) : away(&context)
        }
        context.trace.verdict = .refused
        return Reply(head: challenge, body: .none(length: 0), trace: context.trace)
    }

    /// The registry's own answer to nobody: mostly its challenge.
    private func passWithoutCredential(_ context: inout RequestContext) async -> Reply {
        var bare = context.withoutCredential
        defer { context.trace = bare.trace }
        return await pass(&bare)
    }

    private func base(_ context: inout RequestContext) -> Reply {
        context.trace.verdict = .stale
        context.trace.cacheStatus = CacheStatus(hit: true, detail: "offline")
        let fields: HTTPFields = [.contentType: "application/json", .dockerAPIVersion: "registry/2.0", .cacheControl: "no-store"]
        return Reply(head: ResponseHead(status: 200, fields: fields), body: .bytes(ByteBuffer(string: "{}")), trace: context.trace)
    }

    private func away(_ context: inout RequestContext) -> Reply {
        context.trace.verdict = .failed
        context.trace.record(.refused(problem: ProblemType.offlineMiss.rawValue))
        let detail = RegistryRequest.refusal(of: context.request)
        return Reply(Problem(.offlineMiss, detail: detail, upstream: context.plan.upstream?.name), context.trace)
    }

    /// The kept challenge to get a token, which a client without a credential would be given.
    private func challenge(to context: RequestContext) async -> ResponseHead? {
        var bare = context.withoutCredential
        bare.exchange.request.method = .get
        guard let head = await reads.spaces.challenge(for: bare)?.response.head else { return nil }
        return head.fields[values: .wwwAuthenticate].contains { $0.lowercased().contains("bearer ") } ? head : nil
    }

    // MARK: writes

    /// Sends a write, or refuses it at once.
    func write(_ context: inout RequestContext, by writes: WritePipeline) async -> Reply {
        let authorization = context.request.fields[.authorization] ?? ""
        if context.isReachable, RegistryToken.isOne(authorization), let challenge = await challenge(to: context) {
            context.trace.verdict = .refused
            return Reply(head: challenge, body: .none(length: 0), trace: context.trace)
        }
        return await writes.write(&context)
    }

    /// Gives the reason of a refusal of Rockpool also in the form in which clients of registries show it.
    func complete(_ reply: inout Reply, to context: RequestContext) {
        guard context.isOwnProblem(reply), case .bytes(let bytes) = reply.body,
            var document = (try? JSONValue.parse(Array(bytes.readableBytesView)))?.object
        else { return }
        let message: JSONValue = .string(RegistryRequest.refusal(of: context.request))
        document["detail"] = message
        document["errors"] = [["code": "UNAVAILABLE", "message": message]]
        let text = JSONValue.object(document).serialized()
        reply.body = .bytes(ByteBuffer(bytes: text))
        reply.head.fields[.contentLength] = nil
    }
}

/// A client of a registry, by names from which no secret can be derived.
struct RegistryClient: Sendable {
    /// Of all that identifies it in its request.
    let credential: String
    /// Of its bearer token alone.
    let token: String?
    /// Of the client that was given the token; without a known one, `credential`.
    let holder: String
}

/// A repository of a registry, or the lists of it: who may have these may not have its content.
struct RegistryPlace: Sendable {
    let origin: OriginAddress
    /// `/v2/NAME/`, or `/v2/NAME/tags/list`.
    let path: String

    init(_ origin: OriginAddress, _ repository: String, _ asked: RegistryRequest) {
        (self.origin, path) = (origin, "/v2/\(repository)/" + (asked.isListing ? "tags/list" : ""))
    }

    var url: String { origin.url + path }

    /// The key of the note that the registry has let a client in.
    func key(of holder: String) -> CacheKey {
        CacheKey(
            method: "GET", origin: origin, target: path, identity: StoragePartition.registry.name,
            body: CacheStore.digest(of: "admitted\n\(holder)".utf8))
    }
}

extension ResponseHead {
    /// The digest of the manifest in the answer, or that a note names.
    var manifestDigest: String? {
        fields[.dockerContentDigest].flatMap { BodyDigests.Digest(named: Substring($0)) == nil ? nil : $0 }
    }

    /// False for what may come from a portal, which says yes to everybody.
    fileprivate var isRegistrys: Bool {
        if fields.contains(.dockerContentDigest) || fields.contains(.dockerAPIVersion) { return true }
        return fields[.contentType].map { !$0.lowercased().hasPrefix("text/") } ?? false
    }
}

extension RequestContext {
    /// The time for which content stays fresh: it does not change.
    private static let contentLifetime = TimeSpan.days(365)

    /// This read of a repository, in the partition of registries.
    fileprivate var ofRepository: RequestContext {
        var context = self
        context.identity.partition = StoragePartition.registry.name
        context.plan.keeping = .inOwnPartition
        return context
    }

    /// This read as one of content that its URL names by digest.
    fileprivate var ofContent: RequestContext {
        var context = ofRepository
        context.plan.keeping = .contentInOwnPartition
        context.plan.store = .always
        if context.plan.strategy == .networkFirst { context.plan.strategy = .cacheFirst }
        var lifetime = LifetimeRule()
        (lifetime.fallback, lifetime.least, lifetime.overrides) = (Self.contentLifetime, Self.contentLifetime, true)
        context.plan.route?.ttl = lifetime
        // The digest is that of the bytes as they are.
        context.exchange.request.fields[.acceptEncoding] = nil
        return context
    }

    /// The same request of nobody in particular.
    fileprivate var withoutCredential: RequestContext {
        var context = self
        context.identity = Identity()
        for field in request.fields where SecretFields.identifies(field.name) { context.exchange.request.fields[field.name] = nil }
        return context
    }

    /// This read without the name of the registry that a mirror stands for, which selects nothing here.
    fileprivate var withoutMirror: RequestContext {
        let parts = request.target.split(separator: "?", maxSplits: 1)
        guard parts.count == 2, parts[1].hasPrefix("ns="), !parts[1].contains("&") else { return self }
        return at(String(parts[0]))
    }

    /// True for a problem document of Rockpool about an upstream that is away.
    func isOwnProblem(_ reply: Reply) -> Bool {
        (reply.head.status == 503 || reply.head.status == 504)
            && reply.head.fields[.contentType] == "application/problem+json"
            && (trace.proxyStatus != nil || trace.verdict == .failed || trace.verdict == .refused)
    }
}
