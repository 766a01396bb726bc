// Learns from responses which credentials are accepted, and renews expired ones.
package import HTTPTypes
import Logging
import NIOCore
import OrderedCollections
package import RockpoolCore
import RockpoolStore
import Synchronization

/// Proofs, refreshes and the shares that follow from them.
package final class CredentialRenewal: Sendable {
    let credentials: Credentials
    let data: DataStore
    let reachability: ReachabilityTable
    let upstreams: UpstreamClient
    let notifier: OutboxNotifier
    /// The configuration in force.
    let active: ActiveConfiguration
    let events: EngineEvents
    let logger: Logger
    let now: @Sendable () -> Timestamp
    /// Refresh tokens that clients received, and refreshes in progress.
    let renewals = Renewals()
    /// What answers have shown of who may read where.
    let places = Mutex(PlaceAccess())
    let comparisons = Comparisons()

    init(
        credentials: Credentials, data: DataStore, reachability: ReachabilityTable, upstreams: UpstreamClient, notifier: OutboxNotifier,
        active: ActiveConfiguration, events: EngineEvents, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.credentials = credentials
        self.data = data
        self.reachability = reachability
        self.upstreams = upstreams
        self.notifier = notifier
        self.active = active
        self.events = events
        self.logger = logger
        self.now = now
    }
}

// MARK: - Proofs and refreshes

/// Records which credentials an upstream has accepted, and renews expired ones (docs/caching.md#partitions *Identity*,
/// docs/outbox.md#credentials).
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
            answer.body = BodyPipe(whole: bytes, trailers: answer.body.trailers)
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

    // MARK: - Shares of the outbox

    // Updates the share of the outbox that writes count against when an upstream accepts a credential (docs/reference/behaviour.md#shares
    // *queue shares*).

    /// Records in the outbox that `upstream` has accepted a credential of `principal`.
    /// - Parameter isNews: true if no acceptance was known before.
    func noteProof(of principal: String, at upstream: Upstream, isNews: Bool) async {
        do {
            if !data.takesCredentials(upstream.name), upstream.isDeclared {
                try await data.noteCredentials(at: upstream.name, now: now())
            }
            if isNews { try await data.noteProof(of: principal) }
        } catch { logger.failed("an accepted credential could not be noted in the outbox", error: error) }
    }

    /// Moves an operation to its principal's share if the upstream accepted the credential while the operation was being stored.
    func checkProof(of operation: QueuedWrite) async {
        guard let principal = operation.principal, operation.isUnproved, credentials.isProved(principal) else { return }
        do { try await data.noteProof(of: principal) } catch { logger.failed("a proof could not be noted in the outbox", error: error) }
    }

    // MARK: - Comparison with and without a credential

    // Asks the upstream for a place with and without a credential, before a name that the credential claims is believed
    // (docs/security-model.md#proof; `CredentialComparison`).

    /// How long an answer waits for the comparison of its credential. The comparison itself goes on.
    private static let patience = Duration.milliseconds(500)
    /// Longer bodies are not compared.
    private static let bodyLimit = Int.mib(1)

    /// Compares the answers to `request` with and without the credential of `identity`, and records the proof, if it is one.
    ///
    /// - Returns: once that is done, or after half a second.
    func compare(_ identity: Identity, of request: RequestHead, at upstream: Upstream) async {
        guard let credential = identity.credential, comparisons.begin(credential, now: now()) else { return }
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        Task {
            let ending = await ending(of: identity, request: request, at: upstream)
            if ending == .proved { await prove(identity, of: request, at: upstream) }
            if ending == .open { places.withLock { $0.noteOpen(request) } }
            comparisons.end(credential, ending, now: now())
            end.finish()
        }
        let timer = Task {
            try await Task.sleep(for: Self.patience)
            end.finish()
        }
        for await _ in ended {}
        timer.cancel()
    }

    /// - Returns: nil if the upstream could not be asked.
    private func ending(of identity: Identity, request: RequestHead, at upstream: Upstream) async -> CredentialComparison.Ending? {
        var comparison = CredentialComparison()
        var step = CredentialComparison.first
        while case .ask(let withCredential) = step {
            if case .no = reachability.permission(for: upstream.name, now: now()) { return nil }
            let question = CredentialComparison.question(like: request, withCredential: withCredential)
            do {
                let reply = try await upstreams.send(question, body: .none, upstream: upstream, forClient: false)
                let (bytes, isWhole) = try await reply.body.collect(upTo: Self.bodyLimit)
                step = comparison.take(.init(reply.head, digest: isWhole ? bytes.readableBytesView.hashValue : nil))
            } catch { return nil }
        }
        guard case .ended(let ending) = step else { return nil }
        return ending
    }
}

// MARK: - Running refreshes

/// Holds a refresh machine, a refresh token and a running task for each principal (docs/outbox.md#credentials).
final class Renewals: Sendable {
    private static let limit = 1000

    private struct Renewal {
        var machine = RefreshMachine()
        var token: String?
        var task: Task<HTTPFields?, Never>?
    }

    private let state = Mutex<OrderedDictionary<String, Renewal>>([:])

    /// Records a refresh token that a client has received.
    func learn(_ token: String, of principal: String) {
        update(principal) {
            if $0.token != token { $0.machine.learnt() }
            $0.token = token
        }
    }

    /// Records that the upstream has accepted a credential of this principal.
    func accepted(_ principal: String) { state.withLock { $0[principal]?.machine.accepted() } }

    /// Drops the refresh token of a principal.
    func forget(_ principal: String) { state.withLock { $0[principal] = nil } }

    func token(of principal: String) -> String? { state.withLock { $0[principal]?.token } }

    /// True if a refresh would be attempted now.
    func mayRefresh(_ principal: String, hasFile: Bool, now: Timestamp) -> Bool {
        state.withLock { state in
            let renewal = state[principal] ?? Renewal()
            return renewal.machine.obstacle(hasToken: hasFile || renewal.token != nil, now: now) == nil
        }
    }

    /// Returns the action for a caller that needs a credential, and the task to wait for, if any.
    func needed(
        _ principal: String, isLive: Bool?, hasFile: Bool, now: Timestamp, refresh: @escaping @Sendable () async -> HTTPFields?
    ) -> (action: RefreshMachine.Action, task: Task<HTTPFields?, Never>?) {
        update(principal) { renewal in
            let action = renewal.machine.needed(isLive: isLive, hasToken: hasFile || renewal.token != nil, now: now)
            if action == .refresh { renewal.task = Task { await refresh() } }
            return (action, renewal.task)
        }
    }

    func ended(_ principal: String, ending: RefreshMachine.Ending, now: Timestamp) {
        update(principal) {
            $0.machine.ended(ending, now: now)
            $0.task = nil
        }
    }

    /// At the limit, an entry without a running refresh is removed first.
    private func update<Result>(_ principal: String, _ change: (inout Renewal) -> Result) -> Result {
        state.withLock { state in
            if state[principal] == nil, state.count >= Self.limit, let idle = state.values.firstIndex(where: { $0.task == nil }) {
                state.remove(at: idle)
            }
            return change(&state[principal, default: Renewal()])
        }
    }
}

/// The comparisons under way, and how often those of a credential have shown nothing.
final class Comparisons: Sendable {
    /// At once, of all clients.
    private static let atOnceLimit = 8
    /// Of one credential that have shown nothing, within `forgottenAfter`.
    private static let tryLimit = 3
    private static let forgottenAfter = TimeSpan.minutes(10)
    private static let limit = 1000

    private struct State {
        var running: Set<String> = []
        var tries: OrderedDictionary<String, (count: Int, at: Timestamp)> = [:]
    }

    private let state = Mutex(State())

    /// - Returns: False if this credential is not compared now.
    func begin(_ credential: String, now: Timestamp) -> Bool {
        state.withLock { state in
            if let tries = state.tries[credential], tries.count >= Self.tryLimit, now - tries.at < Self.forgottenAfter { return false }
            guard state.running.count < Self.atOnceLimit else { return false }
            return state.running.insert(credential).inserted
        }
    }

    /// - Parameter ending: nil if the upstream could not be asked.
    func end(_ credential: String, _ ending: CredentialComparison.Ending?, now: Timestamp) {
        state.withLock { state in
            state.running.remove(credential)
            guard let ending else { return }
            let before = state.tries.removeValue(forKey: credential)
            if ending == .proved { return }
            if state.tries.count >= Self.limit { state.tries.removeFirst() }
            let isRecent = before.map { now - $0.at < Self.forgottenAfter } ?? false
            state.tries[credential] = ((isRecent ? before?.count ?? 0 : 0) + 1, now)
        }
    }
}
