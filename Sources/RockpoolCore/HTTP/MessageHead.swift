// The heads that decisions read: a request already resolved to an origin, and a response (RFC 9110 §6).
package import HTTPTypes

/// The head of a request whose target has been resolved (RFC 9110 §7.1).
package struct RequestHead: Hashable, Sendable {
    package var method: HTTPRequest.Method
    package var origin: OriginAddress
    /// Path and query, exactly the bytes that go upstream; `*` for OPTIONS of the whole server.
    package var target: String
    /// End-to-end fields; the hop-by-hop ones have been removed.
    package var fields: HTTPFields

    package init(method: HTTPRequest.Method, origin: OriginAddress, target: String, fields: HTTPFields = [:]) {
        self.method = method
        self.origin = origin
        self.target = target
        self.fields = fields
    }

    /// The absolute URI, as shown to people and kept in the index.
    package var url: String { origin.url + target }
    /// The same without the query: what a rule about queries is kept for.
    package var urlWithoutQuery: String { origin.url + path }
    /// The target without its query.
    package var path: String { String(target.prefix { $0 != "?" }) }
}

/// The head of a response.
package struct ResponseHead: Hashable, Sendable {
    /// 100…599.
    package var status: Int
    package var fields: HTTPFields

    package init(status: Int, fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }
}
