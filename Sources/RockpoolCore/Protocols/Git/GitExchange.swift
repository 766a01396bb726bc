// The requests of git and Git LFS to a server, by what they do (https://git-scm.com/docs/gitprotocol-http;
// https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md).
import HTTPTypes

/// A request on a route with `kind: git`.
package enum GitExchange: Hashable, Sendable {
    /// The list of references, or what the server can do.
    case references
    /// A question to `git-upload-pack`.
    case fetch
    case push
    /// Where large files are, or may be put.
    case largeFiles
    /// Anything else, such as a file of a repository without a server program, or a large file.
    case file

    package init(_ request: RequestHead) {
        let (path, query) = (request.path, request.target.drop { $0 != "?" }.dropFirst())
        if path.hasSuffix("/info/refs") {
            self = query.contains("service=git-receive-pack") ? .push : .references
        } else if request.method == .post, path.hasSuffix("/git-upload-pack") {
            self = .fetch
        } else if path.hasSuffix("/git-receive-pack") {
            self = .push
        } else if request.method == .post, path.hasSuffix("/info/lfs/objects/batch") {
            self = .largeFiles
        } else {
            self = .file
        }
    }

    /// True for a POST that may be a read.
    package var asksByBody: Bool { self == .fetch || self == .largeFiles }

    /// What changes is asked for anew while the server is there; files are answered as their own fields say.
    package var strategy: Strategy? { self == .file ? nil : .networkFirst }

    /// What its client is told where the server cannot be reached.
    package func refusal(host: String) -> String {
        switch self {
        case .push: "\(host) cannot be reached: nothing was pushed. Push again when it is back."
        case .references, .fetch: "\(host) cannot be reached, and this was not fetched before in such a state."
        case .largeFiles: "\(host) cannot be reached, and was not asked for these files before."
        case .file: "\(host) cannot be reached, and this is not stored."
        }
    }
}
