// One line of the server's log: what arrived and what it did, so that a test can prove exactly-once.
package import HTTPTypes
package import RockpoolCore

/// A request the server saw.
package struct Seen: Hashable, Sendable {
    /// What its client got.
    package enum Outcome: Hashable, Sendable {
        /// Not carried out yet.
        case running
        case answered(Int)
        /// The connection was closed without an answer.
        case dropped
    }

    /// From 0, in order of arrival.
    package let sequence: Int
    /// When it arrived.
    package let at: Timestamp
    /// As sent.
    package let method: HTTPRequest.Method
    /// Path and query.
    package let target: String
    /// Its idempotency key, without quotes.
    package let key: String?
    /// Every field, in order.
    package let fields: HTTPFields
    /// As sent.
    package let body: [UInt8]
    /// What its client got.
    package internal(set) var outcome: Outcome
    /// Whether it changed anything.
    package internal(set) var hasEffect: Bool
    /// Its place among those that did, from 0; nil for the others.
    package internal(set) var effectOrder: Int?
}
