// Who a request is from, and the newest live credential of each: in memory only, never stored (outbox.md §1.10, design §5).
package import HTTPTypes
import OrderedCollections
package import RockpoolCore
package import RockpoolStore
import Synchronization

/// Whose request it is, and what of it is secret.
package struct Identity: Hashable, Sendable {
    /// The partition of the cache: nil without credentials, empty where the upstream's rule switches partitions off.
    package var partition: String?
    /// Whose operations these are, and whose credential sends them; nil when the request carries no secret.
    package var principal: String?
    /// The fields that carry secrets: taken out of what is stored, put back when an operation is sent.
    package var secrets: HTTPFields

    package init(partition: String? = nil, principal: String? = nil, secrets: HTTPFields = [:]) {
        self.partition = partition
        self.principal = principal
        self.secrets = secrets
    }

    /// `fields` without the secrets: what may be written to disk.
    package func withoutSecrets(_ fields: HTTPFields) -> HTTPFields { HTTPFields(fields.filter { !secrets.contains($0.name) }) }
}

/// Tells identities apart and remembers their credentials while the server runs.
package final class Credentials: Sendable {
    /// Fields that carry secrets whatever the upstream's rule.
    package static let fieldNames: [HTTPField.Name] = ["Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token"]
        .compactMap { HTTPField.Name($0) }
    private static let limit = 1000

    private struct Live {
        var secrets: HTTPFields
        /// Whether the upstream has answered it 2xx or 304.
        var isProved: Bool
    }

    private let store: DataStore
    private let live = Mutex<OrderedDictionary<String, Live>>([:])
    /// Principals whose last credential the upstream has refused, and that credential.
    private let refused = Mutex<[String: HTTPFields]>([:])

    package init(store: DataStore) { self.store = store }

    /// Who `request` is from, by the upstream's rule (design §5 *Identity*).
    package func identity(of request: RequestHead, rule: IdentityRule) -> Identity {
        var names = Self.fieldNames
        if case .header(let name) = rule, let name = HTTPField.Name(name) { names.append(name) }
        let secrets = HTTPFields(request.fields.filter { names.contains($0.name) })
        let everything = secrets.map { "\($0.name.canonicalName): \($0.value)" }.joined(separator: "\n")
        let fallback = secrets.isEmpty ? nil : named("fields", request, everything)
        let name: String? =
            switch rule {
            case .single: nil
            case .header(let name): HTTPField.Name(name).flatMap { secrets[$0] }.map { named("header", request, $0) }
            case .cookie(let name): request.fields.cookie(name).map { named("cookie", request, $0) }
            // A bearer token says who it is by itself; cookies beside it must not split the identity.
            case .auto: secrets[.authorization].map { named("authorization", request, $0) } ?? fallback
            }
        return Identity(
            partition: rule == .single ? "" : name ?? fallback, principal: secrets.isEmpty ? nil : name ?? fallback, secrets: secrets)
    }

    private func named(_ kind: String, _ request: RequestHead, _ secret: String) -> String {
        store.identityName("\(kind)|\(request.origin.url)|\(secret)".utf8)
    }

    /// Remembers what an identity has just shown. One the upstream has accepted replaces an earlier one; an untried one does not,
    /// nor does it push a proved one out when there are too many.
    ///
    /// - Returns: whether the upstream is now known to accept what it was not known to accept before.
    @discardableResult
    package func remember(_ identity: Identity, isProved: Bool) -> Bool {
        guard let principal = identity.principal else { return false }
        let isRefused = refused.withLock { refused in
            if isProved { refused[principal] = nil }
            return refused[principal] == identity.secrets
        }
        // Shown again after a 401 and not accepted since: it would only be refused again.
        if isRefused { return false }
        return live.withLock { live in
            let known = live[principal]
            if known != nil, !isProved { return false }
            if known == nil, live.count >= Self.limit {
                guard let leaving = live.values.firstIndex(where: { !$0.isProved }) ?? (isProved ? 0 : nil) else { return false }
                live.remove(at: leaving)
            }
            live[principal] = Live(secrets: identity.secrets, isProved: isProved || known?.isProved == true)
            return isProved && !(known?.isProved == true && known?.secrets == identity.secrets)
        }
    }

    /// The live credential of a principal, if it has shown one since the start.
    package func live(of principal: String) -> HTTPFields? { live.withLock { $0[principal]?.secrets } }

    /// The upstream refused what was sent with `fields`: it is not used again until the principal shows another. One shown since
    /// then stays.
    package func forget(_ principal: String, refused fields: HTTPFields) {
        let secrets = live.withLock { live -> HTTPFields? in
            guard let known = live[principal]?.secrets, known.allSatisfy({ fields[values: $0.name].contains($0.value) }) else { return nil }
            live[principal] = nil
            return known
        }
        guard let secrets else { return }
        refused.withLock { refused in
            if refused.count >= Self.limit { refused.removeAll() }
            refused[principal] = secrets
        }
    }
}

extension HTTPFields {
    init(_ fields: some Sequence<HTTPField>) {
        self.init()
        for field in fields { append(field) }
    }

    /// The value of one cookie of the request.
    fileprivate func cookie(_ name: String) -> String? {
        for pair in self[values: .cookie].flatMap({ $0.split(separator: ";") }) {
            let trimmed = pair.drop { $0 == " " }
            if trimmed.hasPrefix("\(name)=") { return String(trimmed.dropFirst(name.count + 1)) }
        }
        return nil
    }
}
