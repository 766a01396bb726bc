// Records which credentials an upstream has accepted, and renews expired ones (docs/caching.md#partitions *Identity*,
// docs/outbox.md#credentials).
package import HTTPTypes
import Logging
import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

extension CredentialRenewal {
    /// Records what an answer says about the credential of its request (docs/security-model.md#proof), and resumes operations that waited
    /// for it.
    ///
    /// Called for every response of an upstream, live or during replay; a response that may come from a portal proves nothing.
    /// - Parameter hasBody: true if the request has content.
    package func heed(
        _ answer: ResponseHead, to request: RequestHead, hasBody: Bool, by identity: Identity, at upstream: Upstream?
    ) async {
        guard let upstream else { return }
        let asking = AskingFields(request, named: upstream.identity.fieldName)
        let verdict = places.withLock { places in
            // An answer is no evidence of itself.
            defer { places.note(answer, to: request, asking: asking) }
            guard identity.principal != nil else { return CredentialVerdict.nothing }
            return CredentialVerdict(answer, to: request, asking: asking, hasBody: hasBody, places: places)
        }
        guard let principal = identity.principal else { return }
        switch verdict {
        case .proved where !credentials.claimsAnother(identity, of: request): await prove(identity, of: request, at: upstream)
        case .proved:
            accept(identity, named: principal, at: upstream)
            // A logout is not repeated.
            if active.routes.plan(for: request).route?.logout != true { await compare(identity, of: request, at: upstream) }
        case .accepted: accept(identity, named: principal, at: upstream)
        case .nothing: break
        }
        // Only the site itself knows the names of its cookies.
        if let session = await credentials.follow(identity, by: answer, to: request, rule: upstream.identity) {
            notifier.inbox.put(.proved(principal: session))
            await recall(principal: session)
            tellCredential(of: session)
        }
    }

    /// Records that the upstream has carried out a request with the credential.
    private func accept(_ identity: Identity, named principal: String, at upstream: Upstream) {
        renewals.accepted(credentials.resolved(principal))
        if credentials.accept(identity, at: upstream) { tellCredential(of: credentials.resolved(principal)) }
    }

    /// Records that a credential is what it claims to be.
    func prove(_ identity: Identity, of request: RequestHead, at upstream: Upstream) async {
        let isNews = await credentials.prove(identity, of: request, at: upstream)
        guard let before = identity.principal, let proved = credentials.current(identity).principal else { return }
        renewals.accepted(proved)
        await noteProof(of: proved, at: upstream, isNews: isNews)
        guard isNews else { return }
        notifier.inbox.put(.proved(principal: proved))
        if proved != before { await recall(principal: proved) }
        tellCredential(of: proved)
    }

    private func tellCredential(of principal: String) {
        notifier.inbox.put(.credential(principal: principal))
        events.tell(.credential(principal: principal))
    }

    /// Publishes the open operations that were queued under the token's own name: they now belong to the proved principal and to lanes of
    /// its name.
    private func recall(principal: String) async {
        do {
            for operation in try await data.openOperations() where operation.principal == principal { notifier.tell(operation) }
        } catch { logger.failed("operations of a proved identity cannot be read", error: error) }
    }

    /// True if operations of `principal` could be sent now: a live credential exists, or a refresh may produce one.
    package func canSend(as principal: String, to upstream: Upstream?) -> Bool {
        if credentials.live(of: principal) != nil { return true }
        guard let recipe = upstream?.refresh else { return false }
        return renewals.mayRefresh(credentials.resolved(principal), hasFile: recipe.tokenFile != nil, now: now())
    }

    /// Returns the credential with which an operation of `principal` is sent: the live one, or a renewed one; nil if the operation must be
    /// parked.
    package func secrets(of principal: String, upstream: Upstream) async -> HTTPFields? {
        if let live = credentials.live(of: principal) { return live }
        return await renew(principal: principal, upstream: upstream, refused: nil)
    }

    // MARK: renewing

    /// Returns a live credential of `principal` to replace the refused one, or to supply a missing one.
    ///
    /// At most one refresh runs per identity; concurrent callers share it. A credential received since the refusal is used without a
    /// refresh.
    /// - Parameter refused: The fields that were answered with 401; nil if the principal has no live credential.
    /// - Returns: The fields to send instead; nil if the operation must be parked and the refused credential passed to `forget`.
    package func renew(principal: String, upstream: Upstream, refused: HTTPFields?) async -> HTTPFields? {
        let principal = credentials.resolved(principal)
        let live = credentials.live(of: principal)
        guard let recipe = upstream.refresh else { return live.flatMap { refused?.carry($0) == true ? nil : $0 } }
        let (action, task) = renewals.needed(
            principal, isLive: live.map { refused?.carry($0) ?? false }, hasFile: recipe.tokenFile != nil, now: now()
        ) { await self.refresh(principal, recipe: recipe, upstream: upstream) }
        switch action {
        case .useLive: return live
        case .refresh, .join: return await task?.value
        case .park(let reason):
            logger.info("a credential is not renewed", metadata: ["upstream": "\(upstream.name)", "reason": "\(reason.rawValue)"])
            return nil
        }
    }

    private func refresh(_ principal: String, recipe: RefreshRecipe, upstream: Upstream) async -> HTTPFields? {
        let (secrets, ending) = await refreshed(principal, recipe: recipe, upstream: upstream)
        renewals.ended(principal, ending: ending, now: now())
        logger.info("credential renewal", metadata: ["upstream": "\(upstream.name)", "ending": "\(ending)"])
        if secrets != nil {
            await noteProof(of: principal, at: upstream, isNews: true)
            tellCredential(of: principal)
        }
        return secrets
    }

    private func refreshed(
        _ principal: String, recipe: RefreshRecipe, upstream: Upstream
    ) async -> (HTTPFields?, RefreshMachine.Ending) {
        guard let head = recipe.head(origin: upstream.origin) else { return (nil, .refused) }
        // An endpoint on another origin uses that origin's declared upstream, if there is one.
        let endpoint = head.origin == upstream.origin ? upstream : active.routes.upstream(for: head.origin, target: head.target)
        if case .no = reachability.permission(for: endpoint?.name, now: now()) { return (nil, .failed) }
        let learnt = renewals.token(of: principal)
        do {
            guard let token = try learnt ?? recipe.tokenFile.map({ try PrivateFile.text($0) }) else { return (nil, .refused) }
            let answer = try await upstreams.send(
                head, body: .bytes(ByteBuffer(string: recipe.form(refreshToken: token))), upstream: endpoint,
                allowsLoopback: endpoint != nil,
                freshConnection: true)
            let body = try await answer.body.collect(upTo: RefreshRecipe.answerLimit)
            guard let tokens = recipe.tokens(in: answer.head, body: Array(body.bytes.readableBytesView)) else {
                return (nil, [400, 401, 403].contains(answer.head.status) ? .refused : .failed)
            }
            guard let secrets = await credentials.adopt(tokens, for: principal, at: upstream, isOwn: learnt != nil) else {
                return (nil, .refused)
            }
            if let next = tokens.refresh { renewals.learn(next, of: principal) }
            return (secrets, .renewed)
        } catch {
            // Logs the error only, never the request, which holds the refresh token.
            logger.failed("a credential could not be renewed", error: error)
            return (nil, .failed)
        }
    }

    // MARK: learning

    /// Returns the response for the client. A response that may contain tokens is read first, and its tokens are kept in memory for
    /// renewals.
    func learning(from answer: OriginReply, to context: RequestContext) async -> OriginReply {
        guard let upstream = context.plan.upstream, let recipe = upstream.refresh, context.request.method == .post,
            recipe.concerns(target: context.request.target), (200...299).contains(answer.head.status), MediaType.isJSON(answer.head.fields)
        else { return answer }
        var answer = answer
        do {
            var bytes = ByteBuffer()
            while var chunk = try await answer.body.next() {
                bytes.writeBuffer(&chunk)
                guard bytes.readableBytes <= RefreshRecipe.answerLimit else {
                    answer.body = BodyPipe(bytes, then: answer.body)
                    return answer
                }
            }
            answer.body = BodyPipe(whole: bytes)
            let content = bytes.decoded(of: answer.head, upTo: RefreshRecipe.answerLimit) ?? bytes
            if let tokens = recipe.tokens(in: answer.head, body: Array(content.readableBytesView)) {
                await learn(tokens, givenTo: context.request, upstream: upstream)
            }
        } catch { answer.body = BodyPipe(broken: error) }
        return answer
    }

    /// Records issued tokens. A token that the upstream has issued is proved: it is no client's claim.
    private func learn(_ tokens: IssuedTokens, givenTo request: RequestHead, upstream: Upstream) async {
        if case .cookie = upstream.identity { return }
        var request = request
        request.fields[.authorization] = tokens.authorization
        let identity = credentials.identity(of: request, rule: upstream.identity)
        await prove(identity, of: request, at: upstream)
        if let token = tokens.refresh, let principal = identity.principal {
            renewals.learn(token, of: credentials.resolved(principal))
        }
    }
}
