// A read that must be forwarded, with everything that lookup and the reuse decision have found out about it (RFC 9111 §4).
import HTTPTypes
import RockpoolCore
import RockpoolStore

/// A read that must be forwarded, with the stored variants and the reason why they cannot answer it.
struct Forwarding: Sendable {
    /// All entries under the key that the request may read.
    let found: [CacheEntry]
    let rules: ReuseContext
    /// The reason for forwarding.
    var reason: CacheStatus.Forward
    /// The epoch of the fetch table before lookup; nil if the store must not be read again.
    let epoch: UInt64?
    /// Index in `found` of the entry that is revalidated or completed.
    var selected: Int?
    var freshness: Freshness?
    /// Sent in place of the client's own conditions and range.
    var conditionals: HTTPFields = [:]
    /// True if the missing rest of the selected entry is requested; false for a revalidation.
    var completes = false
    /// The bytes that complete the selected entry, registered as requested.
    var claim: RunningParts.Claim?

    init(found: [CacheEntry], rules: ReuseContext, reason: CacheStatus.Forward, epoch: UInt64?) {
        self.found = found
        self.rules = rules
        self.reason = reason
        self.epoch = epoch
    }

    var entry: CacheEntry? { selected.map { found[$0] } }

    /// The request fields by which the stored responses vary.
    var varyNames: [HTTPField.Name] { found.first?.response.validity.varyNames ?? [] }

    /// The same read for the whole, as if nothing were stored.
    var anew: Forwarding { Forwarding(found: [], rules: rules, reason: reason, epoch: nil) }

    /// Returns the request as sent upstream: the conditions of a revalidation, if there is one, replace the client's.
    func head(of request: RequestHead) -> RequestHead {
        guard selected != nil else { return request }
        var head = request.unconditional
        for field in conditionals { head.fields.append(field) }
        return head
    }
}
