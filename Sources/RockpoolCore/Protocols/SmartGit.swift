// The reference discovery of git over HTTP, which a POST follows (https://git-scm.com/docs/http-protocol; docs/caching.md#storability).

/// The reads of git's smart protocol.
enum SmartGit {
    /// True for a list of references that opens a fetch or a push. It is never served from the store, because the exchange that follows it
    /// needs the server anyway. The plain files of a repository without a server program are of other types.
    static func opensExchange(_ response: ResponseHead) -> Bool {
        MediaType.essence(of: response.fields)?.hasPrefix("application/x-git-") == true
    }
}
