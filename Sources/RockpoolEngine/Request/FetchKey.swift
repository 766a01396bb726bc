// The key of one fetch that several requests may share (docs/caching.md#coalesced-fetches).
import RockpoolCore

/// The key shared by requests that one fetch may serve.
struct FetchKey: Hashable, Sendable {
    /// The cache key in the request's own partition.
    let base: CacheKey
    /// The values of the fields that select among several responses, if known (`Vary.variantKey`).
    var variant = ""
    /// True for the first request for a range: others wait until its response names the representation.
    var opensRanges = false
}
