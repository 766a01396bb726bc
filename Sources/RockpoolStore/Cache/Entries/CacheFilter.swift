// Selects the entries of a purge.
package import RockpoolCore

/// The selection of entries to remove.
package enum CacheFilter: Hashable, Sendable {
    /// Exactly these URLs, every identity and variant.
    case urls([String])
    /// All URLs with this prefix.
    case prefix(String)
    case category(String)
    /// All entries in this cache group of one origin, or of every origin when nil (RFC 9875).
    case group(String, origin: OriginAddress?)
    case upstream(OriginAddress)
    /// All entries that meet every condition.
    case matching(CacheSelection)
    /// All entries in the partition of this name; of one origin, or of every origin when nil.
    case identity(String, origin: OriginAddress?)
    case all
}
