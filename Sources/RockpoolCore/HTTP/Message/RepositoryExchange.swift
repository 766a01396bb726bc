// Exchanges of git and Mercurial with their servers (https://git-scm.com/docs/http-protocol;
// https://repo.mercurial-scm.org/hg/help/internals.wireprotocol; docs/caching.md#storability).
import HTTPTypes

/// The messages of the protocols by which repositories are fetched and pushed.
enum RepositoryExchange {
    /// The parts of such an exchange, by what may be stored of them.
    enum Part {
        /// Part of a fetch from git: stored where the route says so, so that what was fetched once can be fetched again while the server is
        /// away.
        case fetch
        /// What a push begins with: never stored, because a push would build on an old state.
        case push
        /// Mercurial names its question in fields that no `Vary` mentions.
        case other
    }

    /// The part of an exchange that an answer is; nil for any other answer. The plain files of a repository without a server program are of
    /// other types.
    static func part(_ response: ResponseHead) -> Part? {
        guard let type = MediaType.essence(of: response.fields) else { return nil }
        if type.hasPrefix("application/x-git-receive-pack-") { return .push }
        if type.hasPrefix("application/x-git-upload-pack-") { return .fetch }
        return type.hasPrefix("application/x-git-") || type.hasPrefix("application/mercurial-") ? .other : nil
    }

    /// True for the request that pushes: a write on any route.
    static func isPush(_ request: RequestHead) -> Bool { request.path.hasSuffix("/git-receive-pack") }
}
