// The identities of the credentials that came lately, by keyed digests (docs/architecture.md#relays).
import RockpoolCore
import RockpoolStore
import Synchronization

/// A table in two generations: what the older one has is forgotten when the younger one is full, unless it was used meanwhile.
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
