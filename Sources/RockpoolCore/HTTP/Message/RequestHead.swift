// Heads used by decisions: a request already resolved to an origin, and a response (RFC 9110 §6).
package import HTTPTypes

/// The head of a request after its target was resolved (RFC 9110 §7.1).
package struct RequestHead: Hashable, Sendable {
    package var method: HTTPRequest.Method
    package var origin: OriginAddress
    /// Path and query, the exact bytes sent upstream; `*` for OPTIONS of the whole server.
    package var target: String
    /// End-to-end fields, without hop-by-hop fields.
    package var fields: HTTPFields

    package init(method: HTTPRequest.Method, origin: OriginAddress, target: String, fields: HTTPFields = [:]) {
        self.method = method
        self.origin = origin
        self.target = target
        self.fields = fields
    }

    /// The absolute URI, as displayed and stored in the index.
    package var url: String { origin.url + target }
    /// The absolute URI without the query, the key of rules about queries.
    package var urlWithoutQuery: String { origin.url + path }
    /// The target without its query.
    package var path: String { String(target.prefix { $0 != "?" }) }
    /// The query; nil for a target without one.
    var query: Substring? {
        target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target[target.utf8.index(after: $0)...] }
    }
}
