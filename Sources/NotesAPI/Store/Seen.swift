// One line of the server's log: the request and its effect, so that a test can prove exactly-once execution.
package import HTTPTypes
package import RockpoolCore

/// A logged request.
package struct Seen: Hashable, Sendable {
    /// The outcome for the client.
    package enum Outcome: Hashable, Sendable {
        /// The request has not been carried out yet.
        case running
        case answered(Int)
        /// The connection was closed without a response.
        case dropped
    }

    /// The number of the request, from 0 in order of arrival.
    package let sequence: Int
    /// The time of arrival.
    package let at: Timestamp
    /// As sent.
    package let method: HTTPRequest.Method
    /// Path and query.
    package let target: String
    /// The idempotency key, without quotes.
    package let key: String?
    /// Every field, in order.
    package let fields: HTTPFields
    /// As sent.
    package let body: [UInt8]
    /// The outcome for the client.
    package internal(set) var outcome: Outcome
    /// True if the request changed anything.
    package internal(set) var hasEffect: Bool
    /// The position among the requests with an effect, from 0; nil without effect.
    package internal(set) var effectOrder: Int?
}
