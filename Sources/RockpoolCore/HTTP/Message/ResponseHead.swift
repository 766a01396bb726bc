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
}
