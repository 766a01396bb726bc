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
    /// The name of the principal that sent the operation; nil without a credential.
    package var principal: String?
    /// The program that sent it, as it calls itself.
    package var userAgent: String?
    package var event: String
    package var detail: String?
}
