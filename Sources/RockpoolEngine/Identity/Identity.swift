// The identity of a request: its cache partition, its principal and its secret fields (docs/caching.md#partitions *Identity*).
package import HTTPTypes
import RockpoolCore
import RockpoolStore
import Synchronization

/// The identity of a request, with its secret fields.
package struct Identity: Hashable, Sendable {
    /// The cache partition: nil without credentials, empty if the upstream's rule disables partitions.
    package var partition: String?
    /// The owner of the request's operations, and of the credential that sends them; nil if the request carries no secret.
    package var principal: String?
    /// The name of the credential in the request; a proved one belongs to a principal of another name. Nil if the request carries no secret.
    package var credential: String?
    /// The secret fields: removed before storing, and added again when an operation is sent.
    package var secrets: HTTPFields
    /// True if `Authorization` alone names it: several users may be behind one, told apart by their cookies, as on a site with a password for
    /// all of it.
    package var isByAuthorization = false
    /// True if the upstream's rule names it by one field or cookie: its requests may differ in their other cookies.
    package private(set) var isByRule = false
    /// Names of the fields with a signature of this request alone, which stay with it and serve no other.
    package var signature: Set<HTTPField.Name> = []
    /// True if the credential has been renewed and names the identity for this moment only: nothing may be kept ready for it.
    var isFormer = false
    /// The number of sessions that had left their former credentials behind when the request came (`Sessions`).
    var arrival: UInt64 = 0

    package init(partition: String? = nil, principal: String? = nil, credential: String? = nil, secrets: HTTPFields = [:]) {
        self.partition = partition
        self.principal = principal
        self.credential = credential
        self.secrets = secrets
    }

    /// An identity named by the upstream's rule.
    init(byRule credential: String, _ principal: String, _ secrets: HTTPFields) {
        self.init(partition: principal, principal: principal, credential: credential, secrets: secrets)
        isByRule = true
    }

    /// The secret fields that send operations: those that name it, or all if no field alone does.
    var sending: HTTPFields { isByAuthorization ? HTTPFields(secrets.filter { $0.name == .authorization }) : secrets }

    /// The secret fields of this request alone, with which a write of it is sent. Cookies are among them wherever they are: those of a later
    /// request may be another user's, who has signed in under the same session.
    var beside: HTTPFields {
        if isByAuthorization { return HTTPFields(secrets.filter { $0.name != .authorization }) }
        return HTTPFields(secrets.filter { $0.name == .cookie })
    }

    /// Returns `fields` without secrets, as they may be written to disk.
    package func withoutSecrets(_ fields: HTTPFields) -> HTTPFields {
        HTTPFields(fields.filter { signature.contains($0.name) || !secrets.contains($0.name) && !SecretFields.contains($0.name) })
    }

    /// Returns this identity with another principal, to which its credential was found to belong.
    func folded(into principal: String) -> Identity {
        var identity = self
        if identity.partition == self.principal { identity.partition = principal }
        identity.principal = principal
        return identity
    }
}

extension HTTPFields {
    init(_ fields: some Sequence<HTTPField>) {
        self.init()
        for field in fields { append(field) }
    }

    /// True if these fields contain all of `secrets`.
    func carry(_ secrets: HTTPFields) -> Bool { secrets.allSatisfy { self[values: $0.name].contains($0.value) } }

    /// Returns the value of one cookie of the request.
    func cookie(_ name: String) -> String? {
        for pair in self[values: .cookie].flatMap({ $0.split(separator: ";") }) {
            let trimmed = pair.drop { $0 == " " }
            if trimmed.hasPrefix("\(name)=") { return String(trimmed.dropFirst(name.count + 1)) }
        }
        return nil
    }
}

extension IdentityRule {
    /// The field that names clients; nil for other rules.
    var fieldName: HTTPField.Name? {
        if case .header(let name) = self { HTTPField.Name(name) } else { nil }
    }
}

/// The identities of the credentials that came lately, by keyed digests (docs/architecture.md#relays). What the older of two generations
/// has is forgotten when the younger one is full, unless it was used meanwhile.
final class RecentIdentities: Sendable {
    /// Maximum number of identities of one generation: at about 1 KiB each, 16 MB in all.
    private static let limit = 8000
    /// The time after which an identity is made anew.
    private static let lifetime = TimeSpan.seconds(5)

    /// Any key, so that a change of the configuration ends an identity.
    private static let place = "identities"

    private struct Key: Hashable {
        let digest: CredentialDigest
        let origin: OriginAddress
    }

    private struct Known {
        let identity: Identity
        let until: Timestamp
        /// Removals in the cache before it was made (`CacheStore.hotMoment`), and the places there of its credential, which is removed when it
        /// is found to belong to another principal, and of the configuration.
        let moment: UInt64
        let slots: [Int]
    }

    private let cache: CacheStore
    private let known = Mutex<(young: [Key: Known], old: [Key: Known])>(([:], [:]))

    init(cache: CacheStore) { self.cache = cache }

    /// Returns the identity that the pipeline has found for a credential at an origin; nil if it is to be found anew.
    func identity(of digest: CredentialDigest, at origin: OriginAddress, now: Timestamp) -> Identity? {
        let key = Key(digest: digest, origin: origin)
        let found = known.withLock { known in
            if let young = known.young[key] { return Known?.some(young) }
            guard let old = known.old.removeValue(forKey: key) else { return nil }
            Self.keep(old, as: key, in: &known)
            return old
        }
        guard let found, now < found.until, found.until - Self.lifetime <= now, cache.isUnchanged(found.slots, since: found.moment) else {
            return nil
        }
        return found.identity
    }

    /// Notes the identity of an exchange of the full path.
    /// - Parameter moment: of the cache before the exchange.
    func note(_ identity: Identity, of digest: CredentialDigest, at origin: OriginAddress, since moment: UInt64, now: Timestamp) {
        let fresh = Known(
            identity: identity, until: now + Self.lifetime, moment: moment,
            slots: cache.slots(of: [Self.place], credential: identity.credential))
        known.withLock { Self.keep(fresh, as: Key(digest: digest, origin: origin), in: &$0) }
    }

    private static func keep(_ one: Known, as key: Key, in known: inout (young: [Key: Known], old: [Key: Known])) {
        if known.young.count >= limit { known = ([:], known.young) }
        known.young[key] = one
    }
}
