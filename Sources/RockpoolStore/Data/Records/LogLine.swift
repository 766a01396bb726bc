// A line of an operation's history.
package import RockpoolCore

/// One line of the sync log.
package struct LogLine: Hashable, Sendable {
    package var number: Int64
    package var at: Timestamp
    /// The operation's id; nil when its row was deleted.
    package var operation: String?
    package var method: String?
    /// The operation's URL as its client sent it, secrets included.
    package var url: String?
    package var event: String
    package var detail: String?
}
