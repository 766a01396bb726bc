// Gives a notice to its receiver (docs/guide/operating.md#alarms).
import Logging
package import RockpoolCore
import RockpoolStore

/// Sends notices: webhooks through the outbox, the others to programs of this machine.
package struct NoticeSender: Sendable {
    /// The outcome of sending one notice.
    package enum Outcome: Sendable {
        /// A program has taken it.
        case sent
        /// A webhook's operation.
        case queued(QueuedWrite)
        /// The reason, in words.
        case failed(String)
    }

    private let messages: OwnMessages
    private let local: any LocalNotices
    private let logger: Logger
    private let now: @Sendable () -> Timestamp

    init(messages: OwnMessages, local: any LocalNotices, logger: Logger, now: @escaping @Sendable () -> Timestamp) {
        (self.messages, self.local, self.logger, self.now) = (messages, local, logger, now)
    }

    /// Sends a notice by the way of its rule; logs a failure.
    @discardableResult
    package func send(_ notice: Notice, by rule: NoticeRule) async -> Outcome {
        do {
            if let webhook = rule.webhook { return .queued(try await messages.queue(notice, to: webhook)) }
            if rule.desktop {
                try await local.show(notice)
            } else {
                try await local.run(rule.command, input: notice.json(at: now()).serialized())
            }
            return .sent
        } catch {
            logger.warning(
                "a notice was not sent",
                metadata: ["event": "\(notice.kind?.rawValue ?? "test")", "target": "\(rule.target)", "error": "\(error)"])
            return .failed("\(error)")
        }
    }
}
