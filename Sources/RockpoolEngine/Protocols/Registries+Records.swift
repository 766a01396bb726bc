// What is kept of registries besides content: whom they let in, which manifests tags name, and to whom tokens were given. No token is kept, and no
// credential but by a name.
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

extension Registries {
    /// The longest answer about a token that is read.
    private static let tokenLimit = Int.mib(1)
    private static let shapeLimit = Int.kib(4)

    // MARK: notes

    /// Keeps a note for the time while its registry is away; one that says the same is renewed from time to time only.
    func keep(_ head: ResponseHead, _ content: [UInt8] = [], under key: CacheKey, plan: RoutePlan) async {
        let moment = now()
        do {
            let known = try await cache.lookup([key]).first?.response
            if let known, known.head.manifestDigest == head.manifestDigest, known.bodyLength == Int64(content.count),
                moment - known.responseTime < RegistryAdmissions.askedAgainAfter
            {
                return
            }
            let category = plan.category ?? .important
            let response = StoredResponse(head: head, requestTime: moment, responseTime: moment, category: category.name)
            _ = try await cache.replace(key, by: response, body: ByteBuffer(bytes: content), category: category)
        } catch {
            logger.failed("a note about a registry is not kept", error: error)
        }
    }

    /// Returns a note that still counts.
    func kept(_ key: CacheKey, plan: RoutePlan) async -> CacheEntry? {
        do {
            return try await cache.lookup([key]).first {
                now() - $0.response.responseTime <= active.offlineWindow(of: plan, for: $0.response)
            }
        } catch {
            logger.failed("notes about a registry cannot be read", error: error)
            return nil
        }
    }

    func forget(_ key: CacheKey) async {
        do { try await cache.remove(keys: [key]) } catch { logger.failed("a note about a registry is not removed", error: error) }
    }

    // MARK: tags

    /// Keeps which manifest a tag names, for clients that accept the same types, and for all others.
    func keep(_ head: ResponseHead, asTagOf context: RequestContext) async {
        guard let digest = head.manifestDigest else { return }
        for key in Self.tagKeys(of: context.request) {
            await keep(ResponseHead(status: 204, fields: [.dockerContentDigest: digest]), under: key, plan: context.plan)
        }
    }

    /// Which manifest a tag named last.
    func kept(tagOf context: RequestContext) async -> String? {
        for key in Self.tagKeys(of: context.request) {
            if let digest = await kept(key, plan: context.plan)?.response.head.manifestDigest { return digest }
        }
        return nil
    }

    private static func tagKeys(of request: RequestHead) -> [CacheKey] {
        let types = request.fields[values: .accept].flatMap { $0.split { $0 == "," || $0 == " " } }
        let accepted = types.sorted().joined(separator: ",")
        return ["tag\n\(accepted)", "tag"].map { subject in
            CacheKey(
                method: "GET", origin: request.origin, target: request.path, identity: StoragePartition.registry.name,
                body: CacheStore.digest(of: subject.utf8))
        }
    }

    // MARK: tokens

    /// Answers a question for a token: by its server, or, where that was given an answer before and is away, by a token of Rockpool.
    func token(for context: inout RequestContext) async -> Reply {
        guard context.request.method == .get || context.keyedBody != nil else { return await reads.readServerState(&context) }
        let form = context.keyedBody.map { Array($0.readableBytesView) } ?? []
        let question = TokenQuestion(context.request, form: form)
        let holder = secretName("asker", context.request.urlWithoutQuery + "\n" + question.asker)
        let key = CacheKey(
            method: "GET", origin: context.request.origin, target: context.request.path, identity: StoragePartition.registry.name,
            body: CacheStore.digest(of: "token\n\(holder)".utf8))
        do {
            let answer = try await reads.fetch(context.request, body: context.outboundBody, for: &context)
            let isDoubtful =
                reads.portal.suspicion(of: answer, to: context, stored: []) != nil || reads.portal.isDoubted(plan: context.plan)
            let (head, sentAt) = (answer.head, now())
            if isDoubtful || head.status == 429 || head.status >= 500, let made = await made(holder, question, key, for: &context) {
                answer.body.abandon()
                return made
            }
            var body = ReplyBody.stream(answer.body, length: answer.length)
            let bytes = await body.collect(upTo: Self.tokenLimit, from: cache)?.decoded(of: head, upTo: Self.tokenLimit)
            if head.status == 200, !isDoubtful, let given = bytes.flatMap({ TokenAnswer(Array($0.readableBytesView)) }) {
                for token in given.tokens {
                    let name = secretName("bearer", token)
                    admissions.withLock { $0.note(token: name, of: holder, until: sentAt + given.lifetime, now: sentAt) }
                }
                if context.plan.route?.store != .never {
                    let head = ResponseHead(status: 200, fields: [.contentType: "application/json"])
                    await keep(head, given.kept, under: key, plan: context.plan)
                }
            } else if head.status == 401 || head.status == 403, !isDoubtful {
                await forget(key)
            }
            context.trace.verdict = .pass
            context.trace.cacheStatus = CacheStatus(hit: false, fwd: .bypass, fwdStatus: head.status)
            return Reply(head: head, body: body, trace: context.trace)
        } catch {
            let offered = error.kind == .tls || error.kind == .denied ? nil : await made(holder, question, key, for: &context)
            guard let offered else { return context.unanswered(error, offlineMiss: true) }
            return offered
        }
    }

    /// An answer with a token of Rockpool, for a client that was given one before.
    private func made(_ holder: String, _ question: TokenQuestion, _ key: CacheKey, for context: inout RequestContext) async -> Reply? {
        guard let entry = await kept(key, plan: context.plan),
            let shape = try? await reads.lookup.content(of: entry, limit: Self.shapeLimit)
        else { return nil }
        let moment = now()
        let answer = TokenAnswer.answer(
            of: shape,
            with: { lifetime in
                RegistryToken(holder: holder, repositories: question.repositories, expiresAt: moment + lifetime)
                    .text { self.data.identityName($0) }
            }, at: moment)
        guard let answer else { return nil }
        context.trace.verdict = .stale
        context.trace.cacheStatus = CacheStatus(hit: true, detail: "offline")
        let fields: HTTPFields = [.contentType: "application/json", .cacheControl: "no-store"]
        return Reply(head: ResponseHead(status: 200, fields: fields), body: .bytes(ByteBuffer(bytes: answer)), trace: context.trace)
    }
}

/// Content that a registry keeps at another host: its answer is a redirect to a URL that is good for some minutes. The redirect is followed
/// here, so that the content is fetched once whoever asks, and is there when the URL has ended.
extension ReadPipeline {
    /// The most redirects that are followed.
    private static let mostRedirects = 4

    /// Returns the answer of the host that a redirect for content by its digest leads to; any other answer as it is. The credential stays with
    /// the registry. What a digest names is the same for all, whatever the answer says it varies by.
    func contentBehind(_ first: OriginReply, to head: RequestHead, for context: RequestContext) async throws(TransferFailure) -> OriginReply
    {
        guard context.plan.keeping == .contentInOwnPartition else { return first }
        var (reply, head) = (first, head)
        reply.head.fields[.vary] = nil
        guard head.method == .get else { return reply }
        for _ in 0..<Self.mostRedirects {
            guard let next = head.next(after: reply.head), mayFollow(to: next.origin, from: head.origin) else { return reply }
            reply.body.abandon()
            head = next
            let upstream = active.routes.upstream(for: next.origin, target: next.target)
            reply = try await upstreams.send(
                head, body: .none, upstream: upstream, allowsLoopback: upstream?.allowsLoopback == true,
                account: context.isBehind ? nil : context.exchange.account, forClient: !context.isBehind,
                loop: context.exchange.loop)
            reply.head.fields = HTTPFields(reply.head.fields.filter { $0.name != .setCookie && $0.name != .vary })
            reply.request = nil
        }
        return reply
    }

    /// True for an undeclared host at a port of the web, and for a declared origin. No redirect leads from encryption to none.
    private func mayFollow(to origin: OriginAddress, from former: OriginAddress) -> Bool {
        guard origin.scheme == .https || former.scheme == .http else { return false }
        return active.routes.upstream(for: origin) != nil || origin.port == (origin.scheme == .https ? 443 : 80)
    }
}

extension RequestHead {
    /// The request that follows a redirect, without credentials where it leads to another origin; nil for no redirect.
    fileprivate func next(after answer: ResponseHead) -> RequestHead? {
        guard [301, 302, 303, 307, 308].contains(answer.status), let location = answer.fields[.location] else { return nil }
        var next = self
        if let url = URIReference.resolve(location, origin: origin, target: target) {
            next.target = String(url.dropFirst(origin.url.count))
        } else if case .absolute(let origin, let path)? = try? RequestTarget.parse(location, method: "GET") {
            next = RequestHead(method: method, origin: origin, target: path, fields: SecretFields.removed(from: fields))
            next.fields[.referer] = nil
        } else {
            return nil
        }
        return next
    }
}
