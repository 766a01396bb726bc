// The head of a response (RFC 9110 §6).
package import HTTPTypes

/// The head of a response.
package struct ResponseHead: Hashable, Sendable {
    /// 100…599.
    package var status: Int
    package var fields: HTTPFields

    package init(status: Int, fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }

    /// True if the connection of an HTTP/1.1 response is not used again: whatever its `Connection` says but the usual (RFC 9112 §9.3).
    package var endsConnection: Bool { fields[.connection].map { $0.lowercased() != "keep-alive" } ?? false }
}
