// The rule for CORS fields in replies that Rockpool makes itself (docs/reference/configuration.md#upstreams, `cors`).

/// The origins of pages that may read Rockpool's own replies for one upstream.
package enum CrossOriginRule: Hashable, Sendable {
    /// The origins that the upstream itself has allowed.
    case remembered
    /// No page of another origin.
    case off
    /// These origins, serialised as in the field `Origin`.
    case origins([String])
}
