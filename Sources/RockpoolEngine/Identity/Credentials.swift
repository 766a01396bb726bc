// Identifies the principal of a request, and keeps each principal's newest live credential: in memory, and sealed on disk only if
// configured (docs/outbox.md#credentials, docs/caching.md#partitions *Identity*).
package import HTTPTypes
package import Logging
import OrderedCollections
package import RockpoolCore
package import RockpoolStore
import Synchronization

/// Distinguishes principals and keeps their credentials while the server runs.
package final class Credentials: Sendable {
    private static let limit = 1000
    private static let besideLimit = 4000
    /// Bytes of all those fields together.
    private static let besideBytes = Int.mib(8)
    /// A proof or sealed credential older than this is written again when used; its age shows whether it is still in use.
    private static let renewedAfter = TimeSpan.days(1)

    private struct Live {
        var secrets: HTTPFields
        /// True if an answer has proved it.
        var isProved: Bool
        /// True if the upstream has carried out a request with it.
        var isAccepted = false
        /// When it was written to disk; nil if it is in memory only.
        var sealedAt: Timestamp?
    }

    private struct State {
        var live: OrderedDictionary<String, Live> = [:]
        /// The last refused credential of each principal, until another is accepted.
        var refused: [String: HTTPFields] = [:]
        /// The principal of each credential that the upstream has accepted, by the credential's name.
        var folds: OrderedDictionary<String, ProvedCredential> = [:]

        /// The secret fields that queued writes have for themselves, by their names.
        var beside: OrderedDictionary<String, (principal: String, fields: HTTPFields)> = [:]
        var besideBytes = 0
        /// The principals in `folds`.
        var provedPrincipals: Set<String> = []
        /// Credentials that were in `folds`, and still are on disk until the next one is written.
        var unfolded: [String] = []
        /// Sessions that go on under renewed cookies.
        var sessions = Sessions()

        func resolved(_ principal: String) -> String { folds[principal]?.principal ?? principal }

        func isProved(_ principal: String) -> Bool { live[principal]?.isProved == true || provedPrincipals.contains(principal) }

        mutating func removeBeside(_ name: String) {
            guard let gone = beside.removeValue(forKey: name) else { return }
            besideBytes -= Credentials.size(of: gone.fields)
        }
    }

    private let store: DataStore
    private let now: @Sendable () -> Timestamp
    private let logger: Logger
    private let onChange: @Sendable (String?) -> Void
    private let onMove: @Sendable (_ principal: String, _ name: String) async -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - onChange: receives the name of a credential after it was found to belong to a principal; nil after many changed.
    ///   - onMove: moves the copies of a principal that has become one of another name.
    package init(
        store: DataStore, logger: Logger, now: @escaping @Sendable () -> Timestamp,
        onChange: @escaping @Sendable (String?) -> Void = { _ in },
        onMove: @escaping @Sendable (_ principal: String, _ name: String) async -> Void = { _, _ in }
    ) {
        self.store = store
        self.logger = logger
        self.now = now
        self.onChange = onChange
        self.onMove = onMove
    }

    /// Restores proofs and sealed credentials of an earlier run. Blocks. Without this call every principal is unproved.
    package func restore(_ upstreams: [Upstream]) {
        do {
            let proved = try store.provedCredentials()
            state.withLock { state in
                state.folds = OrderedDictionary(proved.map { ($0.name, $0) }) { $1 }
                state.provedPrincipals = Set(proved.map(\.principal))
            }
        } catch { logger.failed("what credentials were proved cannot be read", error: error) }
        onChange(nil)
        restoreSealed(upstreams)
    }

    /// Restores the credentials that are sealed for these upstreams; those of other upstreams are deleted from disk. Blocks.
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
        } catch { logger.failed("sealed credentials cannot be read", error: error) }
    }

    // MARK: identity

    /// Returns the identity of `request` under the upstream's rule (docs/caching.md#partitions *Identity*).
    package func identity(of request: RequestHead, rule: IdentityRule) -> Identity {
        let named = rule.fieldName
        if rule == .auto || rule == .single, let signed = SignedRequest(request), signed.isOfOneRequest {
            return signer(signed, of: request, isSingle: rule == .single)
        }
        let identifying = HTTPFields(request.fields.filter { $0.name == named || SecretFields.identifies($0.name) })
        let nobody = Identity(partition: rule == .single ? "" : nil)
        guard !identifying.isEmpty, let credential = self.named(identifying, of: request, by: rule) else { return nobody }
        let secrets = HTTPFields(request.fields.filter { $0.name == named || SecretFields.contains($0.name) })
        let owner = owner(of: credential)
        var identity =
            switch rule {
            case .auto, .single:
                Identity(
                    partition: rule == .single ? "" : owner.principal, principal: owner.principal, credential: credential, secrets: secrets)
            case .header, .cookie: Identity(byRule: credential, owner.principal, secrets)
            }
        identity.isByAuthorization = rule == .auto && secrets.contains(.authorization)
        (identity.isFormer, identity.arrival) = (owner.isFormer, owner.arrival)
        return identity
    }

    /// Returns the name of the credential that the rule finds in a request; nil if nothing in it identifies a user.
    /// - Parameter identifying: the request's fields that may.
    private func named(_ identifying: HTTPFields, of request: RequestHead, by rule: IdentityRule) -> String? {
        let one: String? =
            switch rule {
            // A bearer token identifies the principal by itself; accompanying cookies must not split the identity.
            case .auto, .single: identifying[.authorization].map { named("authorization", request: request, secret: $0) }
            case .header(let name):
                HTTPField.Name(name).flatMap { name in identifying.first { $0.name == name } }.map {
                    named("header", request: request, secret: $0.distinctValue)
                }
            case .cookie(let name): request.fields.cookie(name).map { named("cookie", request: request, secret: $0) }
            }
        return one ?? named(everythingIn: identifying, request: request)
    }

    /// Returns the principal of a credential in a request that has just come.
    private func owner(of credential: String) -> (principal: String, isFormer: Bool, arrival: UInt64) {
        let (owner, ended) = state.withLock { state in
            let owner = state.resolved(credential)
            let (former, ended) = state.sessions.arrived(credential, of: owner, now: now)
            for name in ended where state.folds.removeValue(forKey: name) != nil { state.unfolded.append(name) }
            return ((former ?? owner, former != nil, state.sessions.count), ended)
        }
        for name in ended { onChange(name) }
        return owner
    }

    /// Returns the identity of a request that came before under its present name: its credential may have been proved since, or its session
    /// may have gone on.
    package func current(_ identity: Identity) -> Identity {
        guard let principal = identity.principal else { return identity }
        return identity.folded(
            into: state.withLock { state in
                identity.credential.flatMap { state.sessions.successor(of: $0, arrivedAt: identity.arrival) } ?? state.resolved(principal)
            })
    }

    /// Returns the identity of a request that is signed by itself: its key's name, since no two signatures are equal.
    private func signer(_ signed: SignedRequest, of request: RequestHead, isSingle: Bool) -> Identity {
        let name = named("signer", request: request, secret: "\(signed.scheme.rawValue):\(signed.keyID)")
        let others = request.fields.filter { SecretFields.contains($0.name) && !SignedRequest.fields.contains($0.name) }
        var identity = Identity(partition: isSingle ? "" : name, principal: name, credential: name, secrets: HTTPFields(others))
        identity.signature = SignedRequest.fields
        return identity
    }

    private func named(_ kind: String, request: RequestHead, secret: String) -> String {
        store.identityName("\(kind)|\(request.origin.url)|\(secret)".utf8)
    }

    /// Returns the name of these fields together; nil if none of them identifies a user.
    private func named(everythingIn secrets: HTTPFields, request: RequestHead) -> String? {
        let lines = secrets.compactMap { field -> String? in
            let value = field.name == .cookie ? CookieCrumbs.removed(from: field.distinctValue) : field.distinctValue
            return value.isEmpty && field.name == .cookie ? nil : "\(field.name.canonicalName): \(value)"
        }
        return lines.isEmpty ? nil : named("fields", request: request, secret: lines.joined(separator: "\n"))
    }

    /// Returns the principal that a token claims, valid only after the token is proved; nil if it has no such claims.
    package func claimed(by authorization: String, of request: RequestHead) -> String? {
        if let subject = TokenSubject(authorization: authorization) { return named("subject", request: request, secret: subject.text) }
        guard let basic = SignedRequest(authorization: authorization), basic.scheme == .basic else { return nil }
        return named("user", request: request, secret: basic.keyID)
    }

    /// True if the credential claims to be another's than its own, and nothing is known of that yet.
    func claimsAnother(_ identity: Identity, of request: RequestHead) -> Bool {
        guard !identity.isByRule, let credential = identity.credential, let authorization = identity.secrets[.authorization] else {
            return false
        }
        return state.withLock { $0.folds[credential] == nil } && claimed(by: authorization, of: request) != nil
    }

    /// Returns the current name of a principal: operations may still carry the name of a token that has been proved since.
    package func resolved(_ principal: String) -> String { state.withLock { $0.resolved(principal) } }

    // MARK: live credentials

    /// Records the credential of an identity. A credential that is proved replaces an earlier one. An untried one replaces none, and does not
    /// displace a proved one when the limit is reached.
    ///
    /// - Parameter replacesUntried: true if an untried one replaces an untried one, because only the same client can show either: the
    ///   principal is named by a secret that both contain.
    /// - Returns: True if the credential is now known to be proved, and was not before.
    @discardableResult
    package func remember(_ identity: Identity, isProved: Bool, replacesUntried: Bool = false) -> Bool {
        guard let principal = current(identity).principal, identity.signature.isEmpty || !identity.secrets.isEmpty else { return false }
        let secrets = identity.sending
        return state.withLock { state in
            if isProved { state.refused[principal] = nil }
            // Received again after a 401 and not accepted since; the upstream would refuse it again.
            if state.refused[principal] == secrets { return false }
            let known = state.live[principal]
            if let known, !isProved, known.isProved || known.isAccepted || !replacesUntried { return false }
            if known == nil, state.live.count >= Self.limit {
                guard let leaving = state.live.values.firstIndex(where: { !$0.isProved }) ?? (isProved ? 0 : nil) else { return false }
                state.live.remove(at: leaving)
            }
            guard known?.secrets != secrets else {
                if isProved { state.live[principal]?.isProved = true }
                return isProved && known?.isProved != true
            }
            state.live[principal] = Live(secrets: secrets, isProved: isProved)
            return isProved
        }
    }

    /// Records that the upstream has carried out a request with the credential, as it may for anyone: a refused one may be sent again. It
    /// takes another's place only where a secret that both contain names the principal.
    /// - Returns: True if the credential was refused before.
    func accept(_ identity: Identity, at upstream: Upstream) -> Bool {
        guard let principal = current(identity).principal else { return false }
        let secrets = identity.sending
        let isNamedBySecret =
            switch upstream.identity {
            case .auto, .single: principal == identity.credential || !identity.secrets.contains(.authorization)
            case .header: false
            case .cookie: true
            }
        let wasRefused = state.withLock { state in
            let wasRefused = state.refused[principal] == secrets
            if wasRefused || isNamedBySecret { state.refused[principal] = nil }
            return wasRefused
        }
        remember(identity, isProved: false)
        state.withLock { state in
            guard let known = state.live[principal], isNamedBySecret || known.secrets == secrets else { return }
            if known.secrets != secrets { state.live[principal] = Live(secrets: secrets, isProved: known.isProved) }
            state.live[principal]?.isAccepted = true
        }
        return wasRefused
    }

    /// Keeps the secret fields that a request with a write to be queued has beside what names its identity: the write is sent with these, and
    /// not with those of another request. In memory only, of the last 4,000 writes with fields of their own, and at most 8 MiB.
    /// - Returns: their name, which is kept with the write; nil without any.
    func keepBeside(_ identity: Identity, of request: RequestHead) -> String? {
        guard let principal = identity.principal, case let fields = identity.beside,
            let name = named(everythingIn: fields, request: request)
        else { return nil }
        let size = Self.size(of: fields)
        state.withLock { state in
            state.removeBeside(name)
            while let oldest = state.beside.keys.first,
                state.beside.count >= Self.besideLimit || state.besideBytes + size > Self.besideBytes
            {
                state.removeBeside(oldest)
            }
            state.beside[name] = (principal, fields)
            state.besideBytes += size
        }
        return name
    }

    private static func size(of fields: HTTPFields) -> Int { fields.reduce(0) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count } }

    /// Returns the fields that `keepBeside` has named so; none after a restart.
    func beside(_ name: String) -> HTTPFields { state.withLock { $0.beside[name]?.fields ?? [:] } }

    /// Forgets the fields that `keepBeside` has named so, because they were refused.
    func forgetBeside(_ name: String) { state.withLock { $0.removeBeside(name) } }

    /// Returns the live credential of a principal: received since the start, or sealed.
    package func live(of principal: String) -> HTTPFields? { state.withLock { $0.live[$0.resolved(principal)]?.secrets } }

    /// True if a credential of this principal was proved, since the start or according to a stored proof; false without a principal.
    package func isProved(_ principal: String?) -> Bool {
        guard let principal else { return false }
        return state.withLock { $0.isProved($0.resolved(principal)) }
    }

    /// Returns the last credential of a principal, even if it was refused.
    func last(of principal: String) -> HTTPFields? {
        state.withLock { $0.live[$0.resolved(principal)]?.secrets ?? $0.refused[$0.resolved(principal)] }
    }

    /// Withdraws a refused credential, until the upstream accepts it, and deletes it from disk. A credential received since the request was
    /// sent is kept.
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
        do { try await store.unseal(principal: principal) } catch { logger.failed("a refused credential was not removed", error: error) }
    }

    // MARK: forgetting

    /// Returns the principal's name and those of its proved credentials, under which earlier copies may be stored.
    func names(of principal: String) -> [String] {
        state.withLock { state in
            let principal = state.resolved(principal)
            return [principal] + state.folds.values.filter { $0.principal == principal }.map(\.name)
        }
    }

    /// The principals with a live credential.
    var livePrincipals: Set<String> { state.withLock { Set($0.live.keys) } }

    /// Drops the live credential of a principal. It is not used again until the upstream accepts it.
    /// - Parameter withProofs: true to drop also what is known of its tokens, if no write of it waits.
    /// - Returns: True if a credential was known.
    func drop(_ principal: String, withProofs: Bool) -> Bool {
        defer { onChange(nil) }
        return state.withLock { state in
            let principal = state.resolved(principal)
            let known = state.live.removeValue(forKey: principal)
            for (name, one) in state.beside where one.principal == principal { state.removeBeside(name) }
            state.sessions.forget(principal)
            if let known {
                if state.refused.count >= Self.limit { state.refused.removeAll() }
                // Also by the names of its tokens, which are identities of their own without a proof.
                let names = state.folds.values.filter { $0.principal == principal }.map(\.name)
                for name in [principal] + names { state.refused[name] = known.secrets }
            }
            if withProofs {
                state.folds.removeAll { $0.value.principal == principal }
                state.provedPrincipals.remove(principal)
            }
            return known != nil
        }
    }

    // MARK: proof

    /// Records that the credential of `identity` is proved, as the newest live credential of its principal. A token joins the identity that it
    /// claims, with the operations and copies under its own name.
    /// - Returns: True if it was not known to be proved before.
    package func prove(_ identity: Identity, of request: RequestHead, at upstream: Upstream) async -> Bool {
        var identity = current(identity)
        if !identity.isByRule, let credential = identity.credential {
            let known = state.withLock { $0.folds[credential] }
            let principal =
                known?.principal ?? identity.secrets[.authorization].flatMap { claimed(by: $0, of: request) }
                ?? (identity.signature.isEmpty ? nil : identity.principal)
            if let principal {
                if known.map({ now() - $0.at > Self.renewedAfter }) ?? true { await fold(credential, into: principal) }
                if known == nil, credential != principal { await onMove(credential, principal) }
                identity = identity.folded(into: principal)
            }
        }
        let isNews = remember(identity, isProved: true)
        if let principal = identity.principal, upstream.queue.credentials == .sealed {
            await seal(identity.sending, of: principal, at: upstream)
        }
        return isNews
    }

    /// Lets a proved identity go on under the cookies that the answer to its read has renewed (docs/caching.md#renewed-cookies).
    /// - Returns: the identity's name if it is a new one, to which its operations have moved.
    func follow(_ identity: Identity, by answer: ResponseHead, to request: RequestHead, rule: IdentityRule) async -> String? {
        if case .header = rule { return nil }
        guard answer.fields.contains(.setCookie), identity.signature.isEmpty, let old = identity.credential,
            let principal = current(identity).principal, isProved(principal),
            let cookies = RenewedCookies.following(request, answeredBy: answer, now: now())
        else { return nil }
        var later = request
        later.fields[.cookie] = cookies
        let identifying = HTTPFields(later.fields.filter { SecretFields.identifies($0.name) })
        guard let name = named(identifying, of: later, by: rule), name != old else { return nil }
        let made = store.identityName("session|\(UUIDv7.make(at: now()))|\(principal)".utf8)
        let moment = now()
        let step = state.withLock { state -> Sessions.Step? in
            guard state.folds[name] == nil else { return nil }
            let step = state.sessions.goOn(
                from: old, arrivedAt: identity.arrival, to: name, as: state.resolved(principal), orAs: made, at: moment)
            for gone in step?.gone ?? [] { state.folds.removeValue(forKey: gone) }
            if let step, step.isNew {
                state.live[step.principal] = state.live.removeValue(forKey: old)
                state.provedPrincipals.insert(step.principal)
                state.provedPrincipals.remove(old)
            }
            return step
        }
        guard let step else { return nil }
        if step.isNew {
            do { try await store.rename(principal: old, to: step.principal) } catch {
                logger.failed("operations of a session stay with its former cookies", error: error)
            }
            await onMove(old, step.principal)
        }
        await fold(name, into: step.principal, insteadOf: step.gone)
        for gone in step.gone { onChange(gone) }
        return step.isNew ? step.principal : nil
    }

    /// Assigns a credential to `principal` permanently, over restarts.
    /// - Parameter gone: others, which are forgotten.
    private func fold(_ credential: String, into principal: String, insteadOf gone: [String] = []) async {
        let proved = ProvedCredential(name: credential, principal: principal, at: now())
        let (isNews, leaving, unfolded): (Bool, String?, [String]) = state.withLock { state in
            let unfolded = state.unfolded.filter { $0 != credential }
            state.unfolded = []
            let before = state.folds.removeValue(forKey: credential)
            let leaving = state.folds.count >= DataStore.provedLimit ? state.folds.remove(at: 0).key : nil
            state.folds[credential] = proved
            state.provedPrincipals.insert(principal)
            if credential != principal { state.live[credential] = nil }
            return (before?.principal != principal, leaving, unfolded)
        }
        if isNews { onChange(credential) }
        if let leaving { onChange(leaving) }
        do { try await store.keep(proved, insteadOf: gone + unfolded) } catch {
            logger.failed("a proof is kept in memory only", error: error)
        }
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
        } catch { logger.failed("a credential is kept in memory only", error: error) }
    }

    // MARK: renewal

    /// Records an access token that the upstream has issued for `principal`, which proves it.
    /// - Parameter isOwn: True if the refresh token is known to belong to the principal; one from a file may belong to any principal.
    /// - Returns: The fields to send operations with; nil if the token belongs to another principal, or cannot replace this kind of
    ///   credential.
    func adopt(_ tokens: IssuedTokens, for principal: String, at upstream: Upstream, isOwn: Bool) async -> HTTPFields? {
        let request = RequestHead(method: .get, origin: upstream.origin, target: "/")
        var secrets = last(of: principal) ?? [:]
        switch upstream.identity {
        case .auto, .single:
            guard secrets.isEmpty || secrets.contains(.authorization) else { return nil }
            let claimed = claimed(by: tokens.authorization, of: request)
            guard upstream.identity == .single || (claimed.map { $0 == resolved(principal) } ?? isOwn) else { return nil }
            await fold(named("authorization", request: request, secret: tokens.authorization), into: resolved(principal))
        case .header, .cookie: guard isOwn, secrets.contains(.authorization) else { return nil }
        }
        secrets[.authorization] = tokens.authorization
        remember(Identity(principal: principal, secrets: secrets), isProved: true)
        return secrets
    }
}

extension QueuedWrite {
    /// The name of the cookies that it came with, beside the one value that names its identity; nil without any (`Credentials.keepBeside`).
    func ownCookies(at upstream: Upstream) -> String? {
        upstream.identity.isByOneValue ? request.fields[.rockpoolCredential] : nil
    }
}
