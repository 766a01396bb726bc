// The methods by which caches are told to forget: never registered, but common since Squid and Varnish (docs/reference/behaviour.md#purge).
import HTTPTypes

/// A request about stored responses.
package enum PurgeMethod: String, Sendable {
    /// Every variant of the URL, or everything with the tags in the request.
    case purge = "PURGE"
    /// Every URL that the pattern in the target matches.
    case ban = "BAN"

    package init?(_ request: RequestHead) { self.init(rawValue: request.method.rawValue) }
}
