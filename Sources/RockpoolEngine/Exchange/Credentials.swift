// Who a request is from, and the newest live credential of each: in memory, on disk only where the owner has them sealed
// (docs/outbox.md#credentials, docs/caching.md#partitions *Identity*).
package import HTTPTypes
package import Logging
import OrderedCollections
package import RockpoolCore
package import RockpoolStore
import Synchronization

/// Tells identities apart and remembers their credentials while the server runs.
package final class Credentials: Sendable {
    private static let limit = 1000
    /// A proof or a sealed credential is written again when it has been for so long: its age tells whether it is used.
    private static let renewedAfter = TimeSpan.days(1)

    private struct Live {
        var secrets: HTTPFields
        /// Whether the upstream has answered it 2xx or 304.
        var isProved: Bool
        /// When it was written to disk; nil when it is in memory only.
        var sealedAt: Timestamp?
    }

    private struct State {
        var live: OrderedDictionary<String, Live> = [:]
        /// Principals whose last credential the upstream has refused, and that credential.
        var refused: [String: HTTPFields] = [:]
        /// Whose a credential is that the upstream has accepted, by the credential's own name.
        var folds: OrderedDictionary<String, ProvedCredential> = [:]

        /// Whom `folds` name.
        var provedPrincipals: Set<String> = []

        func resolved(_ principal: String) -> String { folds[principal]?.principal ?? principal }
    }

    private let store: DataStore
    private let now: @Sendable () -> Timestamp
    private let logger: Logger
    private let state = Mutex(State())

    package init(store: DataStore, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        self.store = store
        self.logger = logger
        self.now = now
    }

    /// Takes up what an earlier run has left: proofs, and what these upstreams have sealed. Blocks; without it all are strangers.
    package func restore(_ upstreams: [Upstream]) {
        do {
            let proved = try store.provedCredentials()
            state.withLock { state in
                state.folds = OrderedDictionary(proved.map { ($0.name, $0) }) { $1 }
                state.provedPrincipals = Set(proved.map(\.principal))
            }
        } catch { logger.failed("what credentials were proved cannot be read", error) }
        restoreSealed(upstreams)
    }

    /// Takes up what is sealed for these upstreams; what others have left on the disk goes. Blocks.
    package func restoreSealed(_ upstreams: [Upstream]) {
        let sealing = Set(upstreams.lazy.filter { $0.queue.credentials == .sealed }.map(\.name))
        do {
            let sealed = try store.sealedCredentials(of: sealing, now: now())
            state.withLock { state in
                for principal in state.live.keys { state.live[principal]?.sealedAt = nil }
                for credential in sealed {
                    state.live[credential.principal, default: Live(secrets: credential.secrets, isProved: true)].sealedAt = credential.at
                }
            }
        } catch { logger.failed("sealed credentials cannot be read", error) }
    }

    // MARK: who

    /// Who `request` is from, by the upstream's rule (docs/caching.md#partitions *Identity*).
    package func identity(of request: RequestHead, rule: IdentityRule) -> Identity {
        var names = SecretFields.identifying
        if case .header(let name) = rule, let name = HTTPField.Name(name) { names.append(name) }
        let identifying = HTTPFields(request.fields.filter { names.contains($0.name) })
        guard !identifying.isEmpty else { return Identity(partition: rule == .single ? "" : nil) }
        let secrets = HTTPFields(request.fields.filter { names.contains($0.name) || SecretFields.contains($0.name) })
        switch rule {
        // A bearer token says who it is by itself; cookies beside it must not split the identity.
        case .auto, .single:
            let credential =
                secrets[.authorization].map { named("authorization", request, $0) } ?? named(everythingIn: identifying, request)
            let principal = resolved(credential)
            return Identity(
                partition: rule == .single ? "" : principal, principal: principal, credential: credential, secrets: secrets)
        case .header(let name):
            let name = HTTPField.Name(name).flatMap { name in secrets.first { $0.name == name } }.map {
                named("header", request, $0.distinctValue)
            }
            return Identity(name ?? named(everythingIn: identifying, request), secrets)
        case .cookie(let name):
            let name = request.fields.cookie(name).map { named("cookie", request, $0) }
            return Identity(name ?? named(everythingIn: identifying, request), secrets)
        }
    }

    private func named(_ kind: String, _ request: RequestHead, _ secret: String) -> String {
        store.identityName("\(kind)|\(request.origin.url)|\(secret)".utf8)
    }

    private func named(everythingIn secrets: HTTPFields, _ request: RequestHead) -> String {
        named("fields", request, secrets.map { "\($0.name.canonicalName): \($0.distinctValue)" }.joined(separator: "\n"))
    }

    /// What a token's claims make of it, once they may be believed; nil where it claims nothing.
    package func claimed(by authorization: String, of request: RequestHead) -> String? {
        TokenSubject(authorization: authorization).map { named("subject", request, $0.text) }
    }

    /// Whom a principal's name has come to mean: operations may still carry the name of a token that has been proved since.
    package func resolved(_ principal: String) -> String { state.withLock { $0.resolved(principal) } }

    // MARK: their credentials

    /// Remembers what an identity has just shown. One the upstream has accepted replaces an earlier one; an untried one does not,
    /// nor does it push a proved one out when there are too many.
    ///
    /// - Returns: whether the upstream is now known to accept what it was not known to accept before.
    @discardableResult
    package func remember(_ identity: Identity, isProved: Bool) -> Bool {
        guard let principal = identity.principal else { return false }
        return state.withLock { state in
            let principal = state.resolved(principal)
            if isProved { state.refused[principal] = nil }
            // Shown again after a 401 and not accepted since: it would only be refused again.
            if state.refused[principal] == identity.secrets { return false }
            let known = state.live[principal]
            if known != nil, !isProved { return false }
            if known == nil, state.live.count >= Self.limit {
                guard let leaving = state.live.values.firstIndex(where: { !$0.isProved }) ?? (isProved ? 0 : nil) else { return false }
                state.live.remove(at: leaving)
            }
            guard known?.secrets != identity.secrets else {
                state.live[principal]?.isProved = true
                return isProved && known?.isProved != true
            }
            state.live[principal] = Live(secrets: identity.secrets, isProved: isProved)
            return isProved
        }
    }

    /// The live credential of a principal, if it has shown one since the start or has one sealed.
    package func live(of principal: String) -> HTTPFields? { state.withLock { $0.live[$0.resolved(principal)]?.secrets } }

    /// Whether an upstream has accepted a credential of this principal, since the start or as far as proofs are kept; never for nobody.
    package func isProved(_ principal: String?) -> Bool {
        guard let principal else { return false }
        return state.withLock { state in
            let principal = state.resolved(principal)
            return state.live[principal]?.isProved == true || state.provedPrincipals.contains(principal)
        }
    }

    /// The last credential of a principal, be it refused.
    func last(of principal: String) -> HTTPFields? {
        state.withLock { $0.live[$0.resolved(principal)]?.secrets ?? $0.refused[$0.resolved(principal)] }
    }

    /// The upstream refused what was sent with `fields`: it is not used again until the principal shows another, and not kept. One
    /// shown since then stays.
    package func forget(_ principal: String, refused fields: HTTPFields) async {
        let (principal, isSealed) = state.withLock { state in
            let principal = state.resolved(principal)
            guard let known = state.live[principal], fields.carry(known.secrets) else { return (principal, false) }
            state.live[principal] = nil
            if state.refused.count >= Self.limit { state.refused.removeAll() }
            state.refused[principal] = known.secrets
            return (principal, known.sealedAt != nil)
        }
        guard isSealed else { return }
        do { try await store.unseal(principal: principal) } catch { logger.failed("a refused credential was not removed", error) }
    }

    // MARK: proof

    /// The upstream has accepted what `identity` showed: that is its principal's newest live credential from now on, and a token
    /// joins the identity it claims, with the operations taken under its own name.
    /// - Returns: whether the upstream was not known to accept it before.
    package func prove(_ identity: Identity, of request: RequestHead, at upstream: Upstream) async -> Bool {
        var identity = identity
        if let credential = identity.credential {
            let known = state.withLock { $0.folds[credential] }
            let principal = known?.principal ?? identity.secrets[.authorization].flatMap { claimed(by: $0, of: request) }
            if let principal {
                if known.map({ now() - $0.at > Self.renewedAfter }) ?? true { await fold(credential, into: principal) }
                identity = identity.folded(into: principal)
            }
        }
        let isNews = remember(identity, isProved: true)
        if let principal = identity.principal, upstream.queue.credentials == .sealed {
            await seal(identity.secrets, of: principal, at: upstream)
        }
        return isNews
    }

    /// A credential is `principal`'s from now on, after a restart too.
    private func fold(_ credential: String, into principal: String) async {
        let proved = ProvedCredential(name: credential, principal: principal, at: now())
        state.withLock { state in
            state.folds[credential] = nil
            if state.folds.count >= DataStore.provedLimit { state.folds.remove(at: 0) }
            state.folds[credential] = proved
            state.provedPrincipals.insert(principal)
        }
        do { try await store.keep(proved) } catch { logger.failed("a proof is kept in memory only", error) }
    }

    private func seal(_ secrets: HTTPFields, of principal: String, at upstream: Upstream) async {
        let moment = now()
        let isDue = state.withLock { state in
            guard let live = state.live[principal], live.secrets == secrets, live.sealedAt.map({ moment - $0 > Self.renewedAfter }) ?? true
            else { return false }
            state.live[principal]?.sealedAt = moment
            return true
        }
        guard isDue else { return }
        do {
            try await store.seal(SealedCredential(principal: principal, upstream: upstream.name, secrets: secrets, at: moment))
        } catch { logger.failed("a credential is kept in memory only", error) }
    }

    // MARK: renewal

    /// Takes an access token that the upstream has given out for `principal`; being given out proves it.
    /// - Parameter isOwn: whether the refresh token is known to be the principal's: one from a file may be anybody's.
    /// - Returns: what its operations are sent with; nil when the token is another's, or the credential is none that a token replaces.
    func adopt(_ tokens: IssuedTokens, for principal: String, at upstream: Upstream, isOwn: Bool) async -> HTTPFields? {
        let request = RequestHead(method: .get, origin: upstream.origin, target: "/")
        var secrets = last(of: principal) ?? [:]
        switch upstream.identity {
        case .auto, .single:
            guard secrets.isEmpty || secrets.contains(.authorization) else { return nil }
            let claimed = claimed(by: tokens.authorization, of: request)
            guard upstream.identity == .single || (claimed.map { $0 == resolved(principal) } ?? isOwn) else { return nil }
            await fold(named("authorization", request, tokens.authorization), into: resolved(principal))
        case .header, .cookie: guard isOwn, secrets.contains(.authorization) else { return nil }
        }
        secrets[.authorization] = tokens.authorization
        remember(Identity(principal: principal, secrets: secrets), isProved: true)
        return secrets
    }
}
