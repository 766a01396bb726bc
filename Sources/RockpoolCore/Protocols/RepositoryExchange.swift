// Exchanges of git and Mercurial with their servers (https://git-scm.com/docs/http-protocol;
// https://repo.mercurial-scm.org/hg/help/internals.wireprotocol; docs/caching.md#storability).

/// The reads of the protocols by which repositories are fetched and pushed.
enum RepositoryExchange {
    /// True for an answer of such a protocol. It is never served from the store: git's list of references opens an exchange that needs the
    /// server anyway, and Mercurial names its question in fields that no `Vary` mentions. The plain files of a repository without a server
    /// program are of other types.
    static func isPart(_ response: ResponseHead) -> Bool {
        guard let type = MediaType.essence(of: response.fields) else { return false }
        return type.hasPrefix("application/x-git-") || type.hasPrefix("application/mercurial-")
    }
}
